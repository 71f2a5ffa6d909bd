#include "CLinux.h"

// Nearly everything is inline in the header. A signal handler is not: it needs one place for the
// descriptor it writes to, and it may run none of Swift's runtime.

static volatile int forwarding_descriptor = -1;

static void forward(int signal) {
    int saved = errno;
    unsigned char number = (unsigned char)signal;
    if (forwarding_descriptor >= 0) {
        ssize_t written = write(forwarding_descriptor, &number, 1);
        (void)written;
    }
    errno = saved;
}

void clinux_forward_signals_to(int descriptor) { forwarding_descriptor = descriptor; }

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
