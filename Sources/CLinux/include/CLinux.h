// Parts of Linux that Swift's Glibc module does not show: macros with casts, variadic functions and functions
// behind _GNU_SOURCE. No policy lives here; each inline is one system call or one macro.
#ifndef TOKENVAULT_CLINUX_H
#define TOKENVAULT_CLINUX_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

// fcntl(F_OFD_SETLK): 0 when the lock was taken or released, -1 with errno otherwise.
// `type` is F_RDLCK, F_WRLCK or F_UNLCK over the whole file.
static inline int clinux_ofd_setlk(int descriptor, short type) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}

// fcntl(F_OFD_GETLK): 1 when another open file has an exclusive lock of any byte, 0 when none has, -1 with
// errno otherwise.
static inline int clinux_ofd_is_write_locked(int descriptor) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    if (fcntl(descriptor, F_OFD_GETLK, &lock) != 0) {
        return -1;
    }
    return lock.l_type == F_WRLCK;
}

// The same as clinux_ofd_setlk for the one byte at `offset`, which need not exist in the file.
static inline int clinux_ofd_setlk_byte(int descriptor, short type, off_t offset) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = offset;
    lock.l_len = 1;
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}

static inline int clinux_openat(int directory, const char *name, int flags, mode_t mode) {
    return openat(directory, name, flags, mode);
}

// fallocate: gives a range of a file room on the disk, and extends the file to cover it. The range reads as
// zeros.
static inline int clinux_allocate(int descriptor, off_t offset, off_t length) {
    return fallocate(descriptor, 0, offset, length);
}

// renameat2(RENAME_NOREPLACE): fails with EEXIST instead of replacing.
static inline int clinux_rename_noreplace(int from_directory, const char *from,
                                          int to_directory, const char *to) {
    return (int)syscall(SYS_renameat2, from_directory, from, to_directory, to, RENAME_NOREPLACE);
}

static inline int clinux_is_regular(mode_t mode) { return S_ISREG(mode); }
static inline int clinux_is_directory(mode_t mode) { return S_ISDIR(mode); }
static inline int clinux_is_pipe(mode_t mode) { return S_ISFIFO(mode); }
static inline int clinux_is_link(mode_t mode) { return S_ISLNK(mode); }

// prctl(PR_SET_DUMPABLE, 0): no core file, no ptrace by the same user.
static inline int clinux_forbid_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

// mallopt(M_ARENA_MAX, 1): threads allocate from the heap of the first one. Has no effect in a C library
// without such heaps.
static inline void clinux_share_heap(void) {
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1);
#endif
}

// pthread_setname_np for the calling thread; the kernel keeps 15 bytes.
static inline void clinux_name_thread(const char *name) {
    char shortened[16];
    strncpy(shortened, name, sizeof shortened - 1);
    shortened[sizeof shortened - 1] = 0;
    pthread_setname_np(pthread_self(), shortened);
}

// statfs(2)'s f_type, by descriptor; 0 after a failure.
static inline uint64_t clinux_file_system_type(int descriptor) {
    struct statfs information;
    if (fstatfs(descriptor, &information) != 0) return 0;
    return (uint64_t)information.f_type;
}

// The number of processors that the process may use: sched_getaffinity(2); 1 after a failure.
static inline int clinux_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return CPU_COUNT(&set);
}

// Sets where the handler of forwarded signals writes each signal's number, as one byte; -1 for nowhere.
// Returns the previous descriptor.
int clinux_forward_signals_to(int descriptor);

// Returns once no thread writes to the previous descriptor of that handler any more.
void clinux_wait_for_forwarding(void);

// sigaction(2): from now on `signal` is written to that descriptor and does nothing else. An ignored signal
// stays ignored. `previous` gets the previous action. 0, or -1 with errno.
int clinux_forward_signal(int signal, struct sigaction *previous);

// signal(SIG_IGN), whose value is a cast.
static inline void clinux_ignore_signal(int number) { signal(number, SIG_IGN); }

// sigaction(2) and pthread_sigmask(3): `signal` has its default action and is not blocked.
void clinux_default_signal(int signal);

// pthread_sigmask(SIG_UNBLOCK): the parent process may have blocked the signal.
static inline void clinux_unblock_signal(int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

// Whether an action from sigaction(2) ignores its signal.
static inline int clinux_is_ignored(const struct sigaction *action) {
    return action->sa_handler == SIG_IGN;
}

// pipe2(O_CLOEXEC | O_NONBLOCK): 0, or -1 with errno.
static inline int clinux_pipe(int descriptors[2]) { return pipe2(descriptors, O_CLOEXEC | O_NONBLOCK); }

// fcntl(F_DUPFD_CLOEXEC): a copy of `descriptor`, numbered `least` or above; -1 with errno.
static inline int clinux_duplicate(int descriptor, int least) {
    return fcntl(descriptor, F_DUPFD_CLOEXEC, least);
}

// open(O_TMPFILE): a file without a name in `directory`, mode 0600; -1 with errno.
static inline int clinux_nameless_file(const char *directory) {
    return open(directory, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
}

// The same in an open directory, for a file that clinux_name_file can name.
static inline int clinux_nameless_file_in(int directory) {
    return openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

// The path to an open file that linkat(2) accepts without privileges.
static inline void clinux_way_to(int file, char way[32]) { snprintf(way, 32, "/proc/self/fd/%d", file); }

// access(2): whether that path exists.
static inline int clinux_can_name_file(int file) {
    char way[32];
    clinux_way_to(file, way);
    return access(way, F_OK) == 0;
}

// linkat(2): gives a nameless file the name `name` in `directory`. 0, or -1 with errno.
static inline int clinux_name_file(int file, int directory, const char *name) {
    char way[32];
    clinux_way_to(file, way);
    return linkat(AT_FDCWD, way, directory, name, AT_SYMLINK_FOLLOW);
}

// Attributes of statx(2), without the time of the change. Since Linux 6.13, reading that time makes the next
// write give the file a new time, and on ext4 adds an entry to the journal.
struct clinux_attributes {
    uint64_t device, inode, size;
    uint32_t mode, owner, links;
};

// The attributes of `name` in `directory`, or with AT_EMPTY_PATH and "" of `directory` itself; -1 with errno.
static inline int clinux_attributes_of(
    int directory, const char *name, int flags, struct clinux_attributes *attributes
) {
    struct statx facts;
    unsigned asked = STATX_TYPE | STATX_MODE | STATX_UID | STATX_INO | STATX_SIZE | STATX_NLINK;
    if (statx(directory, name, flags, asked, &facts) != 0) return -1;
    attributes->device = makedev(facts.stx_dev_major, facts.stx_dev_minor);
    attributes->inode = facts.stx_ino;
    attributes->size = facts.stx_size;
    attributes->mode = facts.stx_mode;
    attributes->owner = facts.stx_uid;
    attributes->links = facts.stx_nlink;
    return 0;
}

// statx(2): whether `name` in `directory` is a mount point; 0 if the kernel does not report it.
static inline int clinux_is_mount_point(int directory, const char *name) {
#ifdef STATX_ATTR_MOUNT_ROOT
    struct statx facts;
    if (statx(directory, name, AT_SYMLINK_NOFOLLOW, 0, &facts) != 0) return 0;
    return (facts.stx_attributes_mask & facts.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
#else
    (void)directory;
    (void)name;
    return 0;
#endif
}

// mmap(PROT_NONE): `length` bytes without any access; NULL after a failure.
static inline void *clinux_reserve(size_t length) {
    void *start = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

// mprotect(PROT_READ | PROT_WRITE), then madvise: left out of core dumps, and zeros in a forked child. 0, or
// -1 with errno.
static inline int clinux_open_pages(void *start, size_t length) {
    if (mprotect(start, length, PROT_READ | PROT_WRITE) != 0) return -1;
    if (madvise(start, length, MADV_DONTDUMP) != 0) return -1;
    return madvise(start, length, MADV_WIPEONFORK);
}

// memfd_secret(2), mapped over reserved pages: the kernel itself cannot reach them. A forked child does not
// get them: it would share the memory, so that a wipe in the child would wipe the parent's memory. 0, or -1
// with errno.
static inline int clinux_open_secret_pages(void *start, size_t length) {
#ifdef SYS_memfd_secret
    const long number = SYS_memfd_secret;
#else
    const long number = 447;
#endif
    int descriptor = (int)syscall(number, O_CLOEXEC);
    if (descriptor < 0) return -1;
    void *mapped = MAP_FAILED;
    if (ftruncate(descriptor, (off_t)length) == 0)
        mapped = mmap(start, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0);
    int reason = errno;
    close(descriptor);
    errno = reason;
    if (mapped == MAP_FAILED) return -1;
    if (madvise(start, length, MADV_DONTFORK) == 0) return 0;
    // Removes all access again, as when the pages were reserved.
    mmap(start, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return -1;
}

// flock(2) of a directory for one process alone, with a mark that other processes can find without taking a
// lock: a shared record lock of the byte whose number is that of the process. -1 with EWOULDBLOCK while
// another process has it.
static inline int clinux_take_directory(int descriptor) {
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) return -1;
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = getpid(), .l_len = 1};
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}

// The process with that mark; 0 without one, -1 with errno.
static inline int clinux_directory_holder(int descriptor) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(descriptor, F_OFD_GETLK, &lock) != 0) return -1;
    return lock.l_type == F_UNLCK ? 0 : (int)lock.l_start;
}

// inotify_init1(2) and eventfd(2): close-on-exec and non-blocking.
static inline int clinux_inotify(void) { return inotify_init1(IN_CLOEXEC | IN_NONBLOCK); }
static inline int clinux_event_descriptor(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

// inotify_add_watch(2): writes to the file at `path`, or new names in the directory there.
static inline int clinux_watch_contents(int notifier, const char *path) {
    return inotify_add_watch(notifier, path, IN_MODIFY);
}
static inline int clinux_watch_names(int notifier, const char *path) {
    return inotify_add_watch(notifier, path, IN_MOVED_TO | IN_CREATE | IN_ONLYDIR);
}
// The names in the directory, and the directory's own place.
static inline int clinux_watch_place(int notifier, const char *path) {
    return inotify_add_watch(notifier, path,
                             IN_DELETE | IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF |
                                 IN_ONLYDIR);
}
static inline int clinux_unwatch(int notifier, int watch) { return inotify_rm_watch(notifier, watch); }

// The contents of one inotify(7) event.
struct clinux_notice {
    int watch;
    // IN_Q_OVERFLOW: events were lost.
    int overflowed;
    const char *name;
    // The distance to the next event; 0 without a whole event.
    size_t length;
};

static inline struct clinux_notice clinux_notice_at(const void *bytes, size_t count) {
    struct clinux_notice notice = {-1, 0, "", 0};
    struct inotify_event event;
    if (count < sizeof event) return notice;
    memcpy(&event, bytes, sizeof event);
    if (event.len > count - sizeof event) return notice;
    notice.watch = event.wd;
    notice.overflowed = (event.mask & IN_Q_OVERFLOW) != 0;
    // Padded with at least one zero.
    if (event.len > 0) notice.name = (const char *)bytes + sizeof event;
    notice.length = sizeof event + event.len;
    return notice;
}

// timerfd_create(2) of CLOCK_BOOTTIME, which continues while the machine is suspended; -1 with errno.
static inline int clinux_boot_timer(void) {
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

// timerfd_settime(2): expires once, at `nanoseconds` of the clock, or at once if that time has passed. 0, or
// -1 with errno.
static inline int clinux_set_timer(int timer, uint64_t nanoseconds) {
    struct itimerspec setting;
    memset(&setting, 0, sizeof setting);
    if (nanoseconds > INT64_MAX) nanoseconds = INT64_MAX;
    // Zero would stop the timer.
    if (nanoseconds == 0) nanoseconds = 1;
    setting.it_value.tv_sec = (time_t)(nanoseconds / 1000000000u);
    setting.it_value.tv_nsec = (long)(nanoseconds % 1000000000u);
    return timerfd_settime(timer, TFD_TIMER_ABSTIME, &setting, NULL);
}

// The headers of sockets and posix_spawn bring in <sys/select.h>, which with _GNU_SOURCE differs from its
// description in Swift's Glibc module. Functions that need these headers are therefore not inline.

// socket(2) and socketpair(2) of unix(7) streams, close-on-exec; -1 with errno.
int clinux_socket(void);
int clinux_socket_pair(int descriptors[2]);

// environ(7): the environment, ended by NULL.
char **clinux_environment(void);

// accept4(2): a connection, close-on-exec; -1 with errno.
int clinux_accept(int listener);

// connect(2) and bind(2): 0, or -1 with errno.
int clinux_connect(int descriptor, const char *path);
int clinux_bind(int descriptor, const char *path);

// sendto(2) of `text`, as one datagram, to the socket that sd_notify(3) would use: `address` is a path, or an
// abstract name behind an @. 0, or -1 with errno.
int clinux_notify(const char *address, const char *text);

// getsockopt(SO_PEERCRED): 0, or -1 with errno.
int clinux_peer(int descriptor, uint32_t *user, int32_t *process);

// getsockopt(2): whether `descriptor` is a unix(7) stream socket that listens.
int clinux_is_listener(int descriptor);

// getsockname(2): writes the path of a unix(7) socket, with NUL at its end, and returns its length. Returns 0
// without a path, or when it does not fit into `length` bytes.
size_t clinux_socket_name(int descriptor, char *name, size_t length);

// poll(2): whether the other end of a connected socket is gone, even if it sent something before.
int clinux_is_peer_gone(int descriptor);

// posix_spawn(3)'s flags for a program in the background, and the actions that close every descriptor from
// `least` on. `actions` is a posix_spawn_file_actions_t.
short clinux_background_flags(void);
void clinux_close_from(void *actions, int least);

static inline int clinux_is_socket(mode_t mode) { return S_ISSOCK(mode); }

// pidfd_open(2): a descriptor that is readable when the child has ended; -1 with errno, ENOSYS before Linux
// 5.3.
int clinux_process_descriptor(pid_t process);

// From now on a child of fork(2) gets /dev/null in the place of `descriptor`, open for reading. Locks through
// `descriptor` stay with the parent alone, and the child cannot reuse its number. Not for posix_spawn(3),
// which has O_CLOEXEC.
void clinux_keep_from_children(int descriptor);

// Reverts that, before `descriptor` is closed.
void clinux_give_to_children(int descriptor);

// How many times this process and its ancestors have come out of fork(2) as the child.
unsigned clinux_forks(void);

// This process, as getpid(2) returns it, without a system call after the first call. The number is in memory
// that the kernel zeros in every child, whichever call made it (MADV_WIPEONFORK). Without that support, calls
// getpid.
pid_t clinux_process(void);

// fcntl(F_GETFD): whether `descriptor` is open.
static inline int clinux_is_open(int descriptor) { return fcntl(descriptor, F_GETFD) != -1; }

// The number of the program's arguments. -1 if the C library does not pass them to constructors.
int clinux_argument_count(void);
// The argument at `index`, from 0 to the count; valid as long as the program runs.
const char *clinux_argument(int index);

#endif
