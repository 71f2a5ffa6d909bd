// The libsecret calls of a C program, timed by itself: reads `lookup KEY` or `store KEY`, one a line, and
// answers with nanoseconds. A peer of peers-benchmark.
#include <libsecret/secret.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const SecretSchema schema = {
    "org.example.Benchmark", SECRET_SCHEMA_NONE,
    {{"service", SECRET_SCHEMA_ATTRIBUTE_STRING}, {"account", SECRET_SCHEMA_ATTRIBUTE_STRING}, {NULL, 0}}};

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(void) {
    char operation[16], key[64], value[1025];
    long long taken;
    memset(value, 'a', 1024);
    value[1024] = 0;
    while (scanf("%15s %63s", operation, key) == 2) {
        GError *error = NULL;
        long long start = now();
        if (strcmp(operation, "lookup") == 0) {
            char *found = secret_password_lookup_sync(&schema, NULL, &error, "service", "benchmark", "account",
                                                      key, NULL);
            taken = now() - start;
            if (found == NULL || strcmp(found, value) != 0) return 1;
            secret_password_free(found);
        } else if (!secret_password_store_sync(&schema, SECRET_COLLECTION_DEFAULT, key, value, NULL, &error,
                                               "service", "benchmark", "account", key, NULL)) {
            fprintf(stderr, "store: %s\n", error->message);
            return 1;
        } else {
            taken = now() - start;
        }
        printf("%lld\n", taken);
        fflush(stdout);
    }
    return 0;
}
