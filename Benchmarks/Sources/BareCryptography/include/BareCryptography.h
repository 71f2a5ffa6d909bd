// The least work for verifying a vault and for reading from it.
#ifndef BARE_CRYPTOGRAPHY_H
#define BARE_CRYPTOGRAPHY_H

#include <stddef.h>

// Seals `frames` records with contents of `metadata` and `body` bytes in memory, and then times opening and
// hashing them all on `threads` threads. Each record takes the header's AEAD, the chain's keyed hash, the
// hash of the contents, that of the head, and the AEAD of metadata and body. Returns seconds, or a negative
// number after a failure.
double bare_verification(size_t frames, size_t metadata, size_t body, int threads);

// A new file of consecutive sealed records.
typedef struct bare_records bare_records;

// Seals `count` records of `size` bytes into a new file at `path`. Returns NULL after a failure.
bare_records *bare_records_create(const char *path, size_t count, size_t size);

// Reads the record with one `pread` and opens it into existing memory. Returns 0 when it is whole.
int bare_records_open(bare_records *records, size_t index);

void bare_records_destroy(bare_records *records);

// The system calls of a durable store.
typedef struct bare_store bare_store;

// Makes two new files in `directory`. One has room for `count` frames of at least 512 bytes, and begins again
// after those. Returns NULL after a failure.
bare_store *bare_store_create(const char *directory, size_t count, size_t size);

// Makes one frame durable. Returns 0, or -1 with errno.
int bare_store_write(bare_store *store);

void bare_store_destroy(bare_store *store);

#endif
