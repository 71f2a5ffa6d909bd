#!/usr/bin/env bash
# Checks the declarations of CSecret against the headers of libsecret and GLib: every function, the structures it reads,
# and the numbers of their constants.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

cat >"$directory/check.c" <<'C'
#include <gio/gunixfdlist.h>
#include <libsecret/secret.h>
#include "CSecret.h"
#undef g_object_ref
// Each function is assigned to a pointer of the type that is declared for it.
#define CHECK(result, name, parameters) \
    __attribute__((unused)) static __typeof__(((struct csecret_functions *)0)->name) check_##name = name;
CSECRET_FUNCTIONS(CHECK)
#define SAME(ours, our_field, theirs, their_field)                                    \
    _Static_assert(offsetof(struct ours, our_field) == offsetof(theirs, their_field), \
                   #theirs "." #their_field " is elsewhere")
SAME(csecret_error, domain, GError, domain);
SAME(csecret_error, code, GError, code);
SAME(csecret_error, message, GError, message);
SAME(csecret_type, type, GTypeQuery, type);
SAME(csecret_type, class_size, GTypeQuery, class_size);
SAME(csecret_type, instance_size, GTypeQuery, instance_size);
_Static_assert(sizeof(struct csecret_type) == sizeof(GTypeQuery), "GTypeQuery has another size");
SAME(csecret_class, constructor, GObjectClass, constructor);
#define VALUE(constant, number) _Static_assert((constant) == (number), #constant " is another number")
VALUE(G_BUS_TYPE_NONE, 0);
VALUE(G_BUS_TYPE_SYSTEM, 1);
VALUE(G_BUS_TYPE_SESSION, 2);
VALUE(G_DBUS_PROXY_FLAGS_DO_NOT_LOAD_PROPERTIES | G_DBUS_PROXY_FLAGS_DO_NOT_CONNECT_SIGNALS, 1 | 2);
VALUE(SECRET_SERVICE_OPEN_SESSION, 1 << 1);
VALUE(G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION, 1 | 8);
VALUE(G_DBUS_MESSAGE_FLAGS_NO_REPLY_EXPECTED, 1);
VALUE(G_DBUS_MESSAGE_TYPE_METHOD_RETURN, 2);
VALUE(G_DBUS_MESSAGE_TYPE_ERROR, 3);
VALUE(G_DBUS_MESSAGE_TYPE_SIGNAL, 4);
C
# check DIRECTORY: checks the header in that directory.
check() {
    # shellcheck disable=SC2046
    clang -std=gnu11 -Werror -Wincompatible-function-pointer-types -fsyntax-only -DSECRET_API_SUBJECT_TO_CHANGE \
        -I "$1" $(pkg-config --cflags libsecret-1) "$directory/check.c"
}

if [[ ${1:-} == --self-test ]]; then
    check Sources/CSecret/include || { echo "declarations that are right are refused"; exit 1; }
    mkdir "$directory/planted"
    for change in 's/(GVariant \*value, size_t index)/(GVariant *value, int *index)/' \
        's/FUNCTION(uint64_t, g_variant_get_uint64/FUNCTION(uint32_t, g_variant_get_uint64/' \
        's/FUNCTION(void, g_free, (void \*memory))/FUNCTION(void, g_free, (void *memory, int more))/' \
        's/g_variant_n_children/g_variant_m_children/' \
        's/    void \*construct_properties;//' 's/    uint32_t domain;/    uint64_t domain;/'
    do
        sed "$change" Sources/CSecret/include/CSecret.h >"$directory/planted/CSecret.h"
        if cmp --quiet Sources/CSecret/include/CSecret.h "$directory/planted/CSecret.h"; then
            echo "changes nothing: $change"; exit 1
        fi
        if check "$directory/planted" >/dev/null 2>&1; then echo "passes: $change"; exit 1; fi
    done
    exit
fi

check Sources/CSecret/include
