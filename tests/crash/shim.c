/* Counts what a process does to files below a folder, and kills the process at one of these steps:
 * before it, or in the middle of a write. Preloaded by tests/crash.rs.
 *
 * CRASH_UNDER  the folder
 * CRASH_AT     the step, counted from 1; 0 for none
 * CRASH_TORN   set: a write is carried out by half first
 * CRASH_ERROR  set: nothing is killed; from that step on all steps fail with this number, as on a
 *              full disk (28) or one that can no longer be written (30)
 * CRASH_COUNT  a file that gets the number of steps at the end
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long steps;
static long at;
static int torn;
static int error;
static const char *under;
static size_t under_length;

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("CRASH_AT");
    under = getenv("CRASH_UNDER");
    under_length = under ? strlen(under) : 0;
    at = text ? atol(text) : 0;
    torn = getenv("CRASH_TORN") != NULL;
    text = getenv("CRASH_ERROR");
    error = text ? atoi(text) : 0;
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("CRASH_COUNT");
    if (path) {
        char text[32];
        int length = snprintf(text, sizeof text, "%ld", atomic_load(&steps));
        int file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (file >= 0) {
            syscall(SYS_write, file, text, length);
            syscall(SYS_close, file);
        }
    }
}

static int is_ours(const char *path) {
    return under_length && path && !strncmp(path, under, under_length);
}

static int is_our_file(int file) {
    char link[64], path[PATH_MAX];
    if (!under_length)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return is_ours(path);
}

/* Whether this is the step to die at. */
static int is_last(void) {
    return !error && atomic_fetch_add(&steps, 1) + 1 == at;
}

/* Whether the disk is full by now. */
static int is_refused(void) {
    if (!error || !at || atomic_fetch_add(&steps, 1) + 1 < at)
        return 0;
    errno = error;
    return 1;
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

ssize_t write(int file, const void *bytes, size_t size) {
    if (is_our_file(file) && is_last()) {
        if (torn)
            syscall(SYS_write, file, bytes, size / 2);
        die();
    }
    if (is_our_file(file) && is_refused())
        return -1;
    return syscall(SYS_write, file, bytes, size);
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t offset) {
    if (is_our_file(file) && is_last()) {
        if (torn)
            syscall(SYS_pwrite64, file, bytes, size / 2, offset);
        die();
    }
    if (is_our_file(file) && is_refused())
        return -1;
    return syscall(SYS_pwrite64, file, bytes, size, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset) {
    return pwrite64(file, bytes, size, offset);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    if (is_our_file(file) && is_last())
        die();
    if (is_our_file(file) && is_refused())
        return -1;
    return syscall(SYS_writev, file, parts, count);
}

int fsync(int file) {
    if (is_our_file(file) && is_last())
        die();
    if (is_our_file(file) && is_refused())
        return -1;
    return syscall(SYS_fsync, file);
}

int fdatasync(int file) {
    if (is_our_file(file) && is_last())
        die();
    if (is_our_file(file) && is_refused())
        return -1;
    return syscall(SYS_fdatasync, file);
}

int ftruncate64(int file, off64_t size) {
    if (is_our_file(file) && is_last())
        die();
    return syscall(SYS_ftruncate, file, size);
}

int ftruncate(int file, off_t size) {
    return ftruncate64(file, size);
}

int rename(const char *from, const char *to) {
    if (is_ours(to) && is_last())
        die();
    if (is_ours(to) && is_refused())
        return -1;
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int link(const char *from, const char *to) {
    if (is_ours(to) && is_last())
        die();
    if (is_ours(to) && is_refused())
        return -1;
    return syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path) {
    if (is_ours(path) && is_last())
        die();
    return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
