// The system calls of a store in their order, without its own work. The store locks out other writers, and
// checks that the vault is still the file at its path. It reads the device's anchor, the end of the log and
// the replaced item. It gets random bytes, and writes and syncs the frame. It checks that the directory is
// still there, and writes the anchor.
#define _GNU_SOURCE
#include "BareCryptography.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

struct bare_store {
    int file, anchor;
    size_t count, size, next;
    char directory[1024], path[1100];
    unsigned char *frame;
};

static int preallocated(const char *directory, const char *name, size_t length) {
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return -1;
    void *zeros = calloc(1, length);
    int is_written = zeros && pwrite(file, zeros, length, 0) == (ssize_t)length && fsync(file) == 0;
    free(zeros);
    if (is_written) return file;
    close(file);
    return -1;
}

bare_store *bare_store_create(const char *directory, size_t count, size_t size) {
    bare_store *store = calloc(1, sizeof *store);
    if (!store) return NULL;
    store->count = count;
    store->size = size;
    store->frame = malloc(size);
    snprintf(store->directory, sizeof store->directory, "%s", directory);
    snprintf(store->path, sizeof store->path, "%s/bare-store", directory);
    // Room for the bytes that are read before and behind a frame.
    store->file = preallocated(directory, "bare-store", (count + 2) * size);
    store->anchor = preallocated(directory, "bare-anchor", 1024);
    if (store->frame && store->file >= 0 && store->anchor >= 0) {
        memset(store->frame, 7, size);
        return store;
    }
    bare_store_destroy(store);
    return NULL;
}

int bare_store_write(bare_store *store) {
    unsigned char bytes[1024];
    struct statx facts;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    unsigned asked = STATX_TYPE | STATX_MODE | STATX_UID | STATX_INO | STATX_SIZE | STATX_NLINK;
    off_t place = (off_t)(store->next % store->count + 1) * (off_t)store->size;
    int is_done = fcntl(store->file, F_OFD_SETLK, &lock) == 0
        && statx(AT_FDCWD, store->path, AT_SYMLINK_NOFOLLOW, asked, &facts) == 0
        && pread(store->anchor, bytes, 1024, 0) == 1024 && pread(store->file, bytes, 24, place - 16) == 24
        && pread(store->file, bytes, 104, 0) == 104 && getrandom(bytes, 48, 0) == 48
        && getrandom(bytes, 24, 0) == 24
        && pwrite(store->file, store->frame, store->size, place) == (ssize_t)store->size
        && fdatasync(store->file) == 0 && statx(AT_FDCWD, store->directory, 0, asked, &facts) == 0
        && pread(store->anchor, bytes, 1024, 0) == 1024
        && pwrite(store->anchor, store->frame, 512, (off_t)(store->next % 2) * 512) == 512;
    lock.l_type = F_UNLCK;
    store->next += 1;
    return fcntl(store->file, F_OFD_SETLK, &lock) == 0 && is_done ? 0 : -1;
}

void bare_store_destroy(bare_store *store) {
    if (store->file >= 0) close(store->file);
    if (store->anchor >= 0) close(store->anchor);
    free(store->frame);
    free(store);
}
