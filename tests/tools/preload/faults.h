/* faults: a page of memory by which a test makes calls of a server fail. The library of this folder is
 * preloaded into the server and maps the page before the server gives up its files. */
#pragma once

#include <stdatomic.h>

/* FAULTS_VARIABLE: the environment variable with the path of the page, a file of one struct faults. */
#define FAULTS_VARIABLE "FAULTS_PAGE"

/* fault: functions that fail, as one kind where a caller has the choice. */
enum fault {
    FAULT_NONE,
    FAULT_MEMORY, /* malloc, calloc, realloc: NULL */
    FAULT_MMAP,
    FAULT_MREMAP,
    FAULT_THREAD,     /* pthread_create */
    FAULT_SOCKET,     /* socket, bind, listen */
    FAULT_ACCEPT,     /* accept4 */
    FAULT_DESCRIPTOR, /* accept4, dup, open, fopen, opendir */
    FAULT_RECV,
    FAULT_SEND,  /* send, sendmsg */
    FAULT_EPOLL, /* epoll_create1; epoll_ctl that adds, as removals do not fail */
    FAULT_EVENT, /* eventfd */
    FAULT_WAKE,  /* eventfd_write */
    FAULT_POLL,
    FAULT_LOG,           /* write to standard error */
    FAULT_FILE_OPEN,     /* open64, by which SQLite opens files */
    FAULT_FILE_WRITE,    /* pwrite, pwrite64 */
    FAULT_FILE_SYNC,     /* fdatasync, fsync */
    FAULT_FILE_TRUNCATE, /* ftruncate, ftruncate64 */
};

/* While `armed` names a fault, its calls are counted in `seen`; those from number `first` up to, not
 * including, number `end` fail with `reason` in errno. With a reason of 0 they are slow instead: each
 * waits until the fault is disarmed. */
struct faults {
    _Atomic(enum fault) armed;
    atomic_int reason;
    atomic_long first, end;
    atomic_long seen, failed;

    /* Held by the server at this moment: blocks of malloc; bytes of mmap. Blocks from before the page
     * was mapped are not in the count. */
    atomic_long blocks, mapped;

    atomic_long clock; /* seconds that CLOCK_REALTIME is ahead; negative if it went back */
};
