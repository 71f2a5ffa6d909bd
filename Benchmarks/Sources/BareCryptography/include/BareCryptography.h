// What verifying a vault cannot do without, and nothing else.
#ifndef BARE_CRYPTOGRAPHY_H
#define BARE_CRYPTOGRAPHY_H

#include <stddef.h>

// Seals `frames` records with contents of `metadata` and `body` bytes in memory, and then times opening and
// hashing them all on `threads` threads: for each record the header's AEAD, the chain's keyed hash, the hash of the
// contents, that of the head, and the AEAD of metadata and body. Gives seconds, or a negative number when it failed.
double bare_verification(size_t frames, size_t metadata, size_t body, int threads);

#endif
