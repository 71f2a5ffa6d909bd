#include "CLinux.h"

#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

// Nearly everything is inline in the header. A signal handler is not: it needs one place for the descriptor
// it writes to, and must not run Swift's runtime.

static _Atomic int forwarding_descriptor = -1;
// The number of threads in the handler.
static _Atomic int forwarding;

static void forward(int signal) {
    int saved = errno;
    unsigned char number = (unsigned char)signal;
    atomic_fetch_add(&forwarding, 1);
    int descriptor = atomic_load(&forwarding_descriptor);
    if (descriptor >= 0) {
        ssize_t written = write(descriptor, &number, 1);
        (void)written;
    }
    atomic_fetch_sub(&forwarding, 1);
    errno = saved;
}

int clinux_forward_signals_to(int descriptor) {
    return atomic_exchange(&forwarding_descriptor, descriptor);
}

void clinux_wait_for_forwarding(void) {
    // The handler's write does not block, so the wait is short.
    while (atomic_load(&forwarding) > 0) sched_yield();
}

int clinux_forward_signal(int signal, struct sigaction *previous) {
    struct sigaction action;
    if (sigaction(signal, NULL, previous) != 0) return -1;
    if (previous->sa_handler == SIG_IGN) return 0;
    memset(&action, 0, sizeof action);
    action.sa_handler = forward;
    sigemptyset(&action.sa_mask);
    return sigaction(signal, &action, NULL);
}

void clinux_default_signal(int signal) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

// The descriptors that a forked child must not share with its parent. The handler runs between fork(2) and
// the rest of the child, where other threads may have held any lock. The table therefore has no lock, and the
// handler makes only calls that signal-safety(7) allows.
struct kept {
    // The descriptor plus one; 0 for a free place.
    _Atomic int places[64];
    struct kept *_Atomic next;
};

static struct kept kept;
static _Atomic unsigned forks;
static pthread_once_t watching = PTHREAD_ONCE_INIT;

static void begin_child(void) {
    int saved = errno;
    atomic_fetch_add(&forks, 1);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (struct kept *part = &kept; part; part = atomic_load(&part->next)) {
        for (int index = 0; index < 64; index++) {
            int place = atomic_load(&part->places[index]);
            if (place == 0) continue;
            if (nothing < 0 || dup3(nothing, place - 1, O_CLOEXEC) < 0) close(place - 1);
        }
    }
    if (nothing >= 0) close(nothing);
    errno = saved;
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, begin_child); }

unsigned clinux_forks(void) {
    pthread_once(&watching, watch_forks);
    return atomic_load(&forks);
}

void clinux_keep_from_children(int descriptor) {
    pthread_once(&watching, watch_forks);
    for (struct kept *part = &kept;;) {
        for (int index = 0; index < 64; index++) {
            int none = 0;
            if (atomic_compare_exchange_strong(&part->places[index], &none, descriptor + 1)) return;
        }
        struct kept *next = atomic_load(&part->next);
        if (!next) {
            struct kept *fresh = calloc(1, sizeof *fresh);
            if (!fresh) return;
            if (atomic_compare_exchange_strong(&part->next, &next, fresh)) {
                next = fresh;
            } else {
                free(fresh);
            }
        }
        part = next;
    }
}

void clinux_give_to_children(int descriptor) {
    for (struct kept *part = &kept; part; part = atomic_load(&part->next)) {
        for (int index = 0; index < 64; index++) {
            int place = descriptor + 1;
            if (atomic_compare_exchange_strong(&part->places[index], &place, 0)) return;
        }
    }
}

static _Atomic pid_t *process;
static pthread_once_t knowing = PTHREAD_ONCE_INIT;

static void know_process(void) {
    size_t length = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    if (madvise(page, length, MADV_WIPEONFORK) == 0) {
        process = page;
    } else {
        munmap(page, length);
    }
}

pid_t clinux_process(void) {
    pthread_once(&knowing, know_process);
    if (!process) return getpid();
    pid_t known = atomic_load_explicit(process, memory_order_relaxed);
    if (known == 0) {
        known = getpid();
        atomic_store_explicit(process, known, memory_order_relaxed);
    }
    return known;
}

int clinux_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }
char **clinux_environment(void) { return environ; }

int clinux_socket_pair(int descriptors[2]) {
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, descriptors);
}

int clinux_accept(int listener) { return accept4(listener, NULL, NULL, SOCK_CLOEXEC); }

// Sets the address of `path`. Returns 0 when the path is too long for an address.
static socklen_t address_of(struct sockaddr_un *address, const char *path) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    size_t length = strlen(path);
    if (length >= sizeof address->sun_path) return 0;
    memcpy(address->sun_path, path, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
}

int clinux_connect(int descriptor, const char *path) {
    struct sockaddr_un address;
    socklen_t length = address_of(&address, path);
    if (length == 0) { errno = ENAMETOOLONG; return -1; }
    return connect(descriptor, (struct sockaddr *)&address, length);
}
int clinux_bind(int descriptor, const char *path) {
    struct sockaddr_un address;
    socklen_t length = address_of(&address, path);
    if (length == 0) { errno = ENAMETOOLONG; return -1; }
    return bind(descriptor, (struct sockaddr *)&address, length);
}

int clinux_notify(const char *place, const char *text) {
    struct sockaddr_un address;
    socklen_t length = address_of(&address, place);
    if (length == 0) { errno = ENAMETOOLONG; return -1; }
    if (place[0] == '@' && place[1] != 0) {
        // An abstract name begins with a zero and does not end with one.
        address.sun_path[0] = 0;
        length -= 1;
    } else if (place[0] != '/') {
        errno = EAFNOSUPPORT;
        return -1;
    }
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -1;
    ssize_t sent = sendto(descriptor, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address, length);
    int reason = errno;
    close(descriptor);
    errno = reason;
    return sent < 0 ? -1 : 0;
}

int clinux_peer(int descriptor, uint32_t *user, int32_t *process) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return -1;
    *user = peer.uid;
    *process = peer.pid;
    return 0;
}

int clinux_is_listener(int descriptor) {
    int domain = 0, type = 0, listens = 0;
    socklen_t length = sizeof(int);
    if (getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0) return 0;
    length = sizeof(int);
    if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0) return 0;
    length = sizeof(int);
    if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0) return 0;
    return domain == AF_UNIX && type == SOCK_STREAM && listens;
}

size_t clinux_socket_name(int descriptor, char *name, size_t length) {
    struct sockaddr_un address = {0};
    socklen_t size = sizeof address;
    if (getsockname(descriptor, (struct sockaddr *)&address, &size) != 0 || size > sizeof address) return 0;
    if (address.sun_family != AF_UNIX || size <= offsetof(struct sockaddr_un, sun_path)) return 0;
    size_t count = strnlen(address.sun_path, size - offsetof(struct sockaddr_un, sun_path));
    if (count == 0 || count >= length) return 0;
    memcpy(name, address.sun_path, count);
    name[count] = 0;
    return count;
}

int clinux_is_peer_gone(int descriptor) {
    struct pollfd peer = {.fd = descriptor};
    return poll(&peer, 1, 0) > 0 && (peer.revents & (POLLHUP | POLLERR)) != 0;
}

int clinux_process_descriptor(pid_t process) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, process, 0);
#else
    return (int)syscall(434, process, 0);
#endif
}

short clinux_background_flags(void) {
    return POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
}
void clinux_close_from(void *actions, int least) {
    posix_spawn_file_actions_addclosefrom_np(actions, least);
}
