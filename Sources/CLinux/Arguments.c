#include "CLinux.h"

#include <stddef.h>

// Swift's CommandLine reads /proc/self/cmdline, which may not be mounted. glibc also passes main's arguments
// to constructors, even in static programs.

static int count = -1;
static char **values;

#ifdef __GLIBC__
__attribute__((constructor)) static void keep_arguments(int argc, char **argv) {
    count = argc;
    values = argv;
}
#endif

int clinux_argument_count(void) { return count; }

const char *clinux_argument(int index) {
    return values != NULL && index >= 0 && index < count ? values[index] : NULL;
}
