/* Loaded before the C library (LD_PRELOAD): from the n-th call on, calls that need space or a file descriptor fail.
 *
 * fail_from(n, error, prefix) begins counting; only files whose paths begin with the prefix count. With n = 0 nothing
 * fails, and count_calls() tells how many calls there were. Writing counts by descriptor, through /proc/self/fd.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int counting, calls, first, code;
static char root[4096];

void fail_from(int number, int error, const char *prefix) {
    atomic_store(&counting, 0);
    strncpy(root, prefix, sizeof root - 1);
    atomic_store(&calls, 0);
    atomic_store(&first, number);
    atomic_store(&code, error);
    atomic_store(&counting, error != 0 || number < 0);
}

int count_calls(void) { return atomic_load(&calls); }

static int fails(const char *path) {
    if (!atomic_load(&counting) || path == NULL || strncmp(path, root, strlen(root)) != 0) return 0;
    int number = atomic_fetch_add(&calls, 1) + 1;
    if (atomic_load(&first) <= 0 || number < atomic_load(&first)) return 0;
    errno = atomic_load(&code);
    return 1;
}

static int fails_at(int folder, const char *path) {
    if (!atomic_load(&counting) || path == NULL) return 0;
    if (path[0] == '/' || folder == AT_FDCWD) return fails(path);
    char link[64], found[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, found, sizeof found - 1);
    if (length < 0) return 0;
    found[length] = 0;
    return fails(found);
}

static int fails_on(int file) {
    if (!atomic_load(&counting) || atomic_load(&code) == EMFILE) return 0;
    char link[64], found[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, found, sizeof found - 1);
    if (length < 0) return 0;
    found[length] = 0;
    return fails(found);
}

static int is_space(void) { return atomic_load(&code) != EMFILE; }

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Opening needs a descriptor; creating needs space, too. */
static int opening_fails(int folder, const char *path, int flags) {
    return (is_space() && !(flags & O_CREAT)) ? 0 : fails_at(folder, path);
}

#define OPEN(name)                                                   \
    int name(const char *path, int flags, ...) {                     \
        va_list rest;                                                \
        va_start(rest, flags);                                       \
        mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;  \
        va_end(rest);                                                \
        if (opening_fails(AT_FDCWD, path, flags)) return -1;         \
        return NEXT(name)(path, flags, mode);                        \
    }
#define OPENAT(name)                                                 \
    int name(int folder, const char *path, int flags, ...) {         \
        va_list rest;                                                \
        va_start(rest, flags);                                       \
        mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;  \
        va_end(rest);                                                \
        if (opening_fails(folder, path, flags)) return -1;           \
        return NEXT(name)(folder, path, flags, mode);                \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int file, const void *data, size_t size) { return fails_on(file) ? -1 : NEXT(write)(file, data, size); }
ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    return fails_on(file) ? -1 : NEXT(pwrite)(file, data, size, at);
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    return fails_on(file) ? -1 : NEXT(pwrite64)(file, data, size, at);
}
ssize_t writev(int file, const struct iovec *parts, int count) {
    return fails_on(file) ? -1 : NEXT(writev)(file, parts, count);
}
int fsync(int file) { return fails_on(file) ? -1 : NEXT(fsync)(file); }
int fdatasync(int file) { return fails_on(file) ? -1 : NEXT(fdatasync)(file); }
int ftruncate(int file, off_t size) { return fails_on(file) ? -1 : NEXT(ftruncate)(file, size); }
int ftruncate64(int file, off64_t size) { return fails_on(file) ? -1 : NEXT(ftruncate64)(file, size); }
int posix_fallocate(int file, off_t at, off_t size) {
    return fails_on(file) ? atomic_load(&code) : NEXT(posix_fallocate)(file, at, size);
}
int posix_fallocate64(int file, off64_t at, off64_t size) {
    return fails_on(file) ? atomic_load(&code) : NEXT(posix_fallocate64)(file, at, size);
}
int mkdir(const char *path, mode_t mode) { return is_space() && fails(path) ? -1 : NEXT(mkdir)(path, mode); }
int rename(const char *from, const char *to) { return is_space() && fails(to) ? -1 : NEXT(rename)(from, to); }
int renameat(int from, const char *old, int to, const char *new) {
    return is_space() && fails_at(to, new) ? -1 : NEXT(renameat)(from, old, to, new);
}
int link(const char *from, const char *to) { return is_space() && fails(to) ? -1 : NEXT(link)(from, to); }
int linkat(int from, const char *old, int to, const char *new, int flags) {
    return is_space() && fails_at(to, new) ? -1 : NEXT(linkat)(from, old, to, new, flags);
}
