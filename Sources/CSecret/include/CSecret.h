// The functions of libsecret, GIO, GObject and GLib that TokenVault calls, declared by hand and looked up
// with dlopen when first needed. Building and starting need no libsecret, and programs do not link it. No
// policy lives here. `Scripts/soundness/declarations.sh` compares every line with the real headers.
#ifndef TOKENVAULT_CSECRET_H
#define TOKENVAULT_CSECRET_H

#include <stddef.h>
#include <stdint.h>

typedef struct _GVariant GVariant;
typedef struct _GVariantType GVariantType;
typedef struct _GError GError;
typedef struct _GObject GObject;
typedef struct _GObjectConstructParam GObjectConstructParam;
typedef struct _GTypeInstance GTypeInstance;
typedef struct _GTypeQuery GTypeQuery;
typedef struct _GAsyncResult GAsyncResult;
typedef struct _GCancellable GCancellable;
typedef struct _GDBusConnection GDBusConnection;
typedef struct _GDBusAuthObserver GDBusAuthObserver;
typedef struct _GDBusMessage GDBusMessage;
typedef struct _GIOStream GIOStream;
typedef struct _GSocket GSocket;
typedef struct _GSocketConnection GSocketConnection;
typedef struct _GUnixFDList GUnixFDList;
typedef struct _SecretService SecretService;
typedef struct _SecretValue SecretValue;

// g_dbus_connection_add_filter: runs on GIO's own thread for each message, in their order.
typedef GDBusMessage *(*csecret_filter)(GDBusConnection *connection, GDBusMessage *message, int incoming,
                                        void *context);

// FUNCTION(result, name, parameters). Their enumerations are unsigned int, and gboolean is int.
#define CSECRET_FUNCTIONS(FUNCTION)                                                                          \
    FUNCTION(void, g_free, (void *memory))                                                                   \
    FUNCTION(void, g_error_free, (GError *error))                                                            \
    FUNCTION(void *, g_object_ref, (void *object))                                                           \
    FUNCTION(void, g_object_unref, (void *object))                                                           \
    FUNCTION(void, g_object_set, (void *object, const char *property, ...))                                  \
    FUNCTION(void, g_type_query, (size_t type, GTypeQuery *query))                                           \
    FUNCTION(size_t, g_type_register_static_simple,                                                          \
             (size_t parent, const char *name, unsigned int class_size,                                      \
              void (*class_init)(void *type, void *data), unsigned int instance_size,                        \
              void (*instance_init)(GTypeInstance *instance, void *type), unsigned int flags))               \
    FUNCTION(GVariant *, g_variant_ref_sink, (GVariant *value))                                              \
    FUNCTION(GVariant *, g_variant_ref, (GVariant *value))                                                   \
    FUNCTION(void, g_variant_unref, (GVariant *value))                                                       \
    FUNCTION(int, g_variant_is_of_type, (GVariant *value, const GVariantType *type))                         \
    FUNCTION(GVariant *, g_variant_new_boolean, (int value))                                                 \
    FUNCTION(GVariant *, g_variant_new_uint32, (uint32_t value))                                             \
    FUNCTION(GVariant *, g_variant_new_uint64, (uint64_t value))                                             \
    FUNCTION(GVariant *, g_variant_new_string, (const char *text))                                           \
    FUNCTION(GVariant *, g_variant_new_object_path, (const char *path))                                      \
    FUNCTION(GVariant *, g_variant_new_variant, (GVariant *value))                                           \
    FUNCTION(GVariant *, g_variant_new_dict_entry, (GVariant *key, GVariant *value))                         \
    FUNCTION(GVariant *, g_variant_new_array,                                                                \
             (const GVariantType *type, GVariant *const *children, size_t count))                            \
    FUNCTION(GVariant *, g_variant_new_tuple, (GVariant *const *children, size_t count))                     \
    FUNCTION(size_t, g_variant_n_children, (GVariant *value))                                                \
    FUNCTION(GVariant *, g_variant_get_child_value, (GVariant *value, size_t index))                         \
    FUNCTION(GVariant *, g_variant_get_variant, (GVariant *value))                                           \
    FUNCTION(int, g_variant_get_boolean, (GVariant *value))                                                  \
    FUNCTION(uint32_t, g_variant_get_uint32, (GVariant *value))                                              \
    FUNCTION(uint64_t, g_variant_get_uint64, (GVariant *value))                                              \
    FUNCTION(const char *, g_variant_get_string, (GVariant *value, size_t *length))                          \
    FUNCTION(GCancellable *, g_cancellable_new, (void))                                                      \
    FUNCTION(void, g_cancellable_cancel, (GCancellable *cancellable))                                        \
    FUNCTION(char *, g_dbus_address_get_for_bus_sync,                                                        \
             (int bus, GCancellable *cancellable, GError **error))                                           \
    FUNCTION(GDBusConnection *, g_dbus_connection_new_for_address_sync,                                      \
             (const char *address, unsigned int flags, GDBusAuthObserver *observer,                          \
              GCancellable *cancellable, GError **error))                                                    \
    FUNCTION(const char *, g_dbus_connection_get_unique_name, (GDBusConnection *connection))                 \
    FUNCTION(int, g_dbus_connection_is_closed, (GDBusConnection *connection))                                \
    FUNCTION(void, g_dbus_connection_close,                                                                  \
             (GDBusConnection *connection, GCancellable *cancellable,                                        \
              void (*callback)(GObject *object, GAsyncResult *result, void *context),                        \
              void *context))                                                                                \
    FUNCTION(GIOStream *, g_dbus_connection_get_stream, (GDBusConnection *connection))                       \
    FUNCTION(size_t, g_socket_connection_get_type, (void))                                                   \
    FUNCTION(int, g_type_check_instance_is_a, (GTypeInstance *instance, size_t type))                        \
    FUNCTION(GSocket *, g_socket_connection_get_socket, (GSocketConnection *connection))                     \
    FUNCTION(int, g_socket_get_fd, (GSocket *socket))                                                        \
    FUNCTION(unsigned int, g_dbus_connection_add_filter,                                                     \
             (GDBusConnection *connection, csecret_filter filter, void *context,                             \
              void (*release)(void *context)))                                                               \
    FUNCTION(void, g_dbus_connection_remove_filter, (GDBusConnection *connection, unsigned int identifier))  \
    FUNCTION(int, g_dbus_connection_send_message,                                                            \
             (GDBusConnection *connection, GDBusMessage *message, unsigned int flags,                        \
              volatile uint32_t *serial, GError **error))                                                    \
    FUNCTION(GDBusMessage *, g_dbus_message_new_method_call,                                                 \
             (const char *name, const char *path, const char *interface,                                     \
              const char *method))                                                                           \
    FUNCTION(GDBusMessage *, g_dbus_message_new_signal,                                                      \
             (const char *path, const char *interface, const char *signal))                                  \
    FUNCTION(void, g_dbus_message_set_body, (GDBusMessage *message, GVariant *body))                         \
    FUNCTION(void, g_dbus_message_set_flags, (GDBusMessage *message, unsigned int flags))                    \
    FUNCTION(unsigned int, g_dbus_message_get_message_type, (GDBusMessage *message))                         \
    FUNCTION(uint32_t, g_dbus_message_get_serial, (GDBusMessage *message))                                   \
    FUNCTION(uint32_t, g_dbus_message_get_reply_serial, (GDBusMessage *message))                             \
    FUNCTION(const char *, g_dbus_message_get_interface, (GDBusMessage *message))                            \
    FUNCTION(const char *, g_dbus_message_get_member, (GDBusMessage *message))                               \
    FUNCTION(const char *, g_dbus_message_get_path, (GDBusMessage *message))                                 \
    FUNCTION(const char *, g_dbus_message_get_sender, (GDBusMessage *message))                               \
    FUNCTION(const char *, g_dbus_message_get_error_name, (GDBusMessage *message))                           \
    FUNCTION(GVariant *, g_dbus_message_get_body, (GDBusMessage *message))                                   \
    FUNCTION(GUnixFDList *, g_dbus_message_get_unix_fd_list, (GDBusMessage *message))                        \
    FUNCTION(int, g_unix_fd_list_get_length, (GUnixFDList *list))                                            \
    FUNCTION(int, g_unix_fd_list_get, (GUnixFDList *list, int index, GError **error))                        \
    FUNCTION(size_t, secret_service_get_type, (void))                                                        \
    FUNCTION(void *, g_initable_new,                                                                         \
             (size_t type, GCancellable *cancellable, GError **error,                                        \
              const char *property, ...))                                                                    \
    FUNCTION(const char *, secret_service_get_session_algorithms, (SecretService *service))                  \
    FUNCTION(const char *, secret_service_get_session_dbus_path, (SecretService *service))                   \
    FUNCTION(GVariant *, secret_service_encode_dbus_secret, (SecretService *service, SecretValue *value))    \
    FUNCTION(SecretValue *, secret_service_decode_dbus_secret, (SecretService *service, GVariant *value))    \
    FUNCTION(SecretValue *, secret_value_new_full,                                                           \
             (char *secret, ptrdiff_t length, const char *content_type, void (*destroy)(void *secret)))      \
    FUNCTION(const char *, secret_value_get, (SecretValue *value, size_t *length))                           \
    FUNCTION(const char *, secret_value_get_content_type, (SecretValue *value))                              \
    FUNCTION(void, secret_value_unref, (void *value))

// The address of each function.
#define CSECRET_FIELD(result, name, parameters) result (*name) parameters;
struct csecret_functions {
    CSECRET_FUNCTIONS(CSECRET_FIELD)
};
#undef CSECRET_FIELD

// The first fields of GError, which is not opaque.
struct csecret_error {
    uint32_t domain;
    int code;
    char *message;
};

// GTypeQuery, and the first fields of GObjectClass.
struct csecret_type {
    size_t type;
    const char *name;
    unsigned int class_size;
    unsigned int instance_size;
};
struct csecret_class {
    size_t type;
    void *construct_properties;
    GObject *(*constructor)(size_t type, unsigned int count, GObjectConstructParam *properties);
};

// The functions of libsecret-1.so.0 and the libraries that it links, looked up once. Returns NULL when the
// library or one of the functions is missing, and `missing` then names it.
const struct csecret_functions *csecret_load(const char **missing);

// g_initable_new of a SecretService on `connection`, which is not the session's shared one. Opens a session
// on the calling thread, until `cancellable` is cancelled. Loads nothing and connects no signal. Returns NULL
// with `error` set after a failure.
SecretService *csecret_open_session(const struct csecret_functions *functions, GDBusConnection *connection,
                                    GCancellable *cancellable, GError **error);

// secret_value_new_full with a copy of the bytes that is wiped and freed with the value. NULL without memory.
SecretValue *csecret_value(const struct csecret_functions *functions, const void *bytes, size_t count,
                           const char *content_type);

// Whether `value` has the type written as `type`.
static inline int csecret_is(const struct csecret_functions *functions, GVariant *value, const char *type) {
    return functions->g_variant_is_of_type(value, (const GVariantType *)type);
}

// g_variant_new_array of elements of the type written as `type`.
static inline GVariant *csecret_array(const struct csecret_functions *functions, const char *type,
                                      GVariant *const *elements, size_t count) {
    return functions->g_variant_new_array((const GVariantType *)type, elements, count);
}

// Whether `stream` is a connection of sockets.
static inline int csecret_is_socket(const struct csecret_functions *functions, GIOStream *stream) {
    return stream != NULL
        && functions->g_type_check_instance_is_a((GTypeInstance *)stream, functions->g_socket_connection_get_type());
}

// The fields of `error`.
static inline const struct csecret_error *csecret_fields(const GError *error) {
    return (const struct csecret_error *)error;
}

#endif
