#include "BareCryptography.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NONCE = 24, TAG = 16, HEADER = 136, HEAD = 8 + NONCE + HEADER + TAG, DATA = 90, TRAILER = 32 };

struct work {
    const unsigned char *records;
    size_t first, count, metadata, body, length;
    unsigned char key[32];
    int failed;
};

static void seal(unsigned char *target, const unsigned char *plaintext, size_t length, const unsigned char *key) {
    static const unsigned char data[DATA];
    randombytes_buf(target, NONCE);
    crypto_aead_xchacha20poly1305_ietf_encrypt(
        target + NONCE, NULL, plaintext, length, data, DATA, NULL, target, key);
}

static int opens(const unsigned char *sealed, size_t length, unsigned char *target, const unsigned char *key) {
    static const unsigned char data[DATA];
    return crypto_aead_xchacha20poly1305_ietf_decrypt(
               target, NULL, NULL, sealed + NONCE, length - NONCE, data, DATA, sealed, key) == 0;
}

static void *verify(void *argument) {
    struct work *work = argument;
    size_t largest = work->metadata > work->body ? work->metadata : work->body;
    unsigned char *target = malloc(largest + HEADER);
    unsigned char digest[32];
    for (size_t index = work->first; index < work->first + work->count; index++) {
        const unsigned char *record = work->records + index * work->length;
        const unsigned char *content = record + HEAD;
        int whole = opens(record + 8, HEAD - 8, target, work->key);
        crypto_generichash(digest, 32, record, HEAD, work->key, 32);
        crypto_generichash(digest, 32, content, work->metadata + work->body, NULL, 0);
        crypto_generichash(digest, 16, record, HEAD, NULL, 0);
        whole = whole && opens(content, work->metadata, target, work->key);
        whole = whole && opens(content + work->metadata, work->body, target, work->key);
        if (!whole) work->failed = 1;
    }
    free(target);
    return NULL;
}

double bare_verification(size_t frames, size_t metadata, size_t body, int threads) {
    if (sodium_init() < 0 || threads < 1 || threads > 256 || metadata < NONCE + TAG || body < NONCE + TAG) return -1;
    size_t length = HEAD + metadata + body + TRAILER;
    unsigned char *records = malloc(frames * length);
    unsigned char *plaintext = calloc(1, HEADER + metadata + body);
    if (records == NULL || plaintext == NULL) return -1;
    unsigned char key[32] = {1};
    for (size_t index = 0; index < frames; index++) {
        unsigned char *record = records + index * length;
        memset(record, 7, 8);
        seal(record + 8, plaintext, HEADER, key);
        seal(record + HEAD, plaintext, metadata - NONCE - TAG, key);
        seal(record + HEAD + metadata, plaintext, body - NONCE - TAG, key);
    }
    struct work works[256];
    pthread_t started[256];
    struct timespec before, after;
    int failed = 0;
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (int thread = 0; thread < threads; thread++) {
        size_t first = frames * (size_t)thread / (size_t)threads;
        size_t end = frames * (size_t)(thread + 1) / (size_t)threads;
        works[thread] = (struct work){records, first, end - first, metadata, body, length, {1}, 0};
        if (pthread_create(&started[thread], NULL, verify, &works[thread]) != 0) return -1;
    }
    for (int thread = 0; thread < threads; thread++) {
        pthread_join(started[thread], NULL);
        failed |= works[thread].failed;
    }
    clock_gettime(CLOCK_MONOTONIC, &after);
    free(records);
    free(plaintext);
    if (failed) return -1;
    return (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
}
