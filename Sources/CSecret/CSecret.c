#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "CSecret.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct csecret_functions functions;
static const char *missing_part;

static const struct {
    const char *name;
    size_t offset;
} places[] = {
#define PLACE(result, name, parameters) {#name, offsetof(struct csecret_functions, name)},
    CSECRET_FUNCTIONS(PLACE)
#undef PLACE
};

static void load(void) {
    const char *library = "libsecret-1.so.0";
    // Never closed: GLib's types cannot be unloaded.
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL) {
        missing_part = library;
        return;
    }
    for (size_t index = 0; index < sizeof places / sizeof places[0]; index++) {
        // The handle of a library also finds symbols of the libraries that it links: GIO, GObject and GLib.
        void *address = dlsym(handle, places[index].name);
        if (address == NULL) {
            missing_part = places[index].name;
            return;
        }
        memcpy((char *)&functions + places[index].offset, &address, sizeof address);
    }
}

const struct csecret_functions *csecret_load(const char **missing) {
    pthread_once(&once, load);
    *missing = missing_part;
    return missing_part == NULL ? &functions : NULL;
}

// libsecret's own constructor puts every SecretService on the session's shared connection. libsecret allows
// its class to be derived from, and this class keeps the connection it was given.
static pthread_once_t registered = PTHREAD_ONCE_INIT;
static size_t session_type;
static GObject *(*base_constructor)(size_t type, unsigned int count, GObjectConstructParam *properties);

static GObject *construct(size_t type, unsigned int count, GObjectConstructParam *properties) {
    GObject *object = base_constructor(type, count, properties);
    // G_BUS_TYPE_NONE; G_DBUS_PROXY_FLAGS_DO_NOT_LOAD_PROPERTIES | DO_NOT_CONNECT_SIGNALS
    functions.g_object_set(object, "g-bus-type", 0, "g-flags", 1 | 2, "g-name", "org.freedesktop.secrets",
                           (const char *)NULL);
    return object;
}

static void initialize_class(void *type, void *data) {
    (void)data;
    struct csecret_class *class = type;
    base_constructor = class->constructor;
    class->constructor = construct;
}

static void register_type(void) {
    struct csecret_type base;
    functions.g_type_query(functions.secret_service_get_type(), (GTypeQuery *)&base);
    session_type = functions.g_type_register_static_simple(base.type, "TokenVaultSecretSession", base.class_size,
                                                           initialize_class, base.instance_size, NULL, 0);
}

SecretService *csecret_open_session(const struct csecret_functions *loaded, GDBusConnection *connection,
                                    GCancellable *cancellable, GError **error) {
    pthread_once(&registered, register_type);
    // SECRET_SERVICE_OPEN_SESSION
    return loaded->g_initable_new(session_type, cancellable, error, "g-connection", connection, "flags", 1 << 1,
                                  (const char *)NULL);
}

// The length is in front of the bytes that a value points to, so that they can be wiped.
static void wipe_and_free(void *secret) {
    size_t *block = (size_t *)((char *)secret - sizeof(size_t));
    explicit_bzero(secret, *block);
    free(block);
}

SecretValue *csecret_value(const struct csecret_functions *functions, const void *bytes, size_t count,
                           const char *content_type) {
    // A zero at the end: some functions of libsecret read values as text.
    size_t *block = malloc(sizeof(size_t) + count + 1);
    if (block == NULL) return NULL;
    *block = count;
    char *secret = (char *)(block + 1);
    if (count > 0) memcpy(secret, bytes, count);
    secret[count] = 0;
    return functions->secret_value_new_full(secret, (ptrdiff_t)count, content_type, wipe_and_free);
}
