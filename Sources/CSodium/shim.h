// libsodium's own header without additions. TokenVaultCrypto is the only importer.
#ifndef TOKENVAULT_CSODIUM_SHIM_H
#define TOKENVAULT_CSODIUM_SHIM_H

#include <sodium.h>

#endif
