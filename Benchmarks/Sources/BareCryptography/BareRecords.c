#include "BareCryptography.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NONCE = 24, TAG = 16 };

struct bare_records {
    int descriptor;
    size_t size;
    unsigned char *sealed, *plaintext;
    unsigned char key[32];
};

bare_records *bare_records_create(const char *path, size_t count, size_t size) {
    if (sodium_init() < 0) return NULL;
    bare_records *records = calloc(1, sizeof *records);
    if (records == NULL) return NULL;
    records->size = size;
    records->sealed = malloc(NONCE + size + TAG);
    records->plaintext = calloc(1, size);
    records->descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int failed = records->descriptor < 0 || records->sealed == NULL || records->plaintext == NULL;
    for (size_t index = 0; !failed && index < count; index++) {
        randombytes_buf(records->sealed, NONCE);
        crypto_aead_xchacha20poly1305_ietf_encrypt(
            records->sealed + NONCE, NULL, records->plaintext, size, NULL, 0, NULL, records->sealed, records->key);
        ssize_t length = (ssize_t)(NONCE + size + TAG);
        failed = write(records->descriptor, records->sealed, (size_t)length) != length;
    }
    if (!failed) return records;
    bare_records_destroy(records);
    return NULL;
}

int bare_records_open(bare_records *records, size_t index) {
    size_t length = NONCE + records->size + TAG;
    if (pread(records->descriptor, records->sealed, length, (off_t)(index * length)) != (ssize_t)length) return -1;
    return crypto_aead_xchacha20poly1305_ietf_decrypt(
        records->plaintext, NULL, NULL, records->sealed + NONCE, length - NONCE, NULL, 0, records->sealed, records->key);
}

void bare_records_destroy(bare_records *records) {
    if (records->descriptor >= 0) close(records->descriptor);
    free(records->sealed);
    free(records->plaintext);
    free(records);
}
