/* Channels: memory on which the host and the driver take turns.
 *
 * Each thread of the host that calls has a channel. The host writes a call and gives the turn away;
 * the driver may ask for something that only the host can do (map memory, say), and at last answers.
 * Who waits spins for a moment, then sleeps. Both processes run this file: the host in its calls, the
 * driver from Python. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define SUCCESS 0u
#define DEVICE_LOST 0x70000001u
#define OUT_OF_HOST_MEMORY 0x70000002u
#define UNINITIALIZED 0x78000001u
#define UNSUPPORTED_VERSION 0x78000002u
#define UNSUPPORTED_FEATURE 0x78000003u
#define INVALID_ARGUMENT 0x78000004u
#define INVALID_NULL_POINTER 0x78000007u
#define VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))
#define COUNT(array) (sizeof(array) / sizeof *(array))

#define CHANNELS 4096u
#define WORDS 24
#define SPIN_NANOSECONDS 50000 /* a sleeping process needs as long to wake */
#define SLEEP_NANOSECONDS 100000000
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

enum turn { HOST = 0, DRIVER = 1, ASLEEP = 2 /* added while the other side sleeps */ };

/* Requests of the driver; LEAVE is the host's: its thread ends. Functions have their numbers. */
enum request {
    ANSWER = 0xffffff00u,
    MAP,
    UNMAP,
    POPULATE,
    OPEN,
    CLOSE,
    LEAVE,
};

struct channel {
    _Atomic uint32_t turn;
    uint32_t request; /* what is asked of the side whose turn it is */
    uint32_t thread;  /* the host's number of its thread */
    uint32_t result;
    uint64_t words[WORDS]; /* arguments of a call, or of a request and its answer */
};

/* The memory that both processes map. */
struct shared {
    char key[32];                      /* digest of the description that both sides were made of */
    const void *const *const *tables;  /* function tables of the extensions, in the host */
    uint32_t host, driver;             /* numbers of the processes */
    _Atomic uint32_t spinning;         /* threads that wait without sleeping, on both sides */
    _Atomic uint32_t ended;            /* the driver has seen the host's end, or what looks like it */
    struct channel ready;              /* taken by the host until the driver serves */
    struct channel channels[CHANNELS];
};

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Return how many threads may spin: not more than there are processors, and none beside a single
 * one's work. */
static uint32_t most_spinning(void) {
    static _Atomic uint32_t found = UINT32_MAX;
    if (found == UINT32_MAX) {
        cpu_set_t set;
        int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
        found = count > 1 ? (uint32_t)count : 0;
    }
    return found;
}

/* Wait for a turn for a moment, without sleeping; true if it came. */
static int spin(struct shared *shared, struct channel *channel, uint32_t turn) {
    int came = 0;
    if (atomic_fetch_add(&shared->spinning, 1) < most_spinning())
        for (int64_t end = nanoseconds() + SPIN_NANOSECONDS; !came && nanoseconds() < end;)
            for (int i = 0; !came && i < 100; i++)
                came = atomic_load_explicit(&channel->turn, memory_order_acquire) == turn;
    atomic_fetch_sub(&shared->spinning, 1);
    return came;
}

static void hand_over(struct channel *channel, uint32_t to) {
    if (atomic_exchange(&channel->turn, to) & ASLEEP)
        syscall(SYS_futex, &channel->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Wait for a turn; false if the other side is no longer there.
 *
 * is_there tells whether it is; NULL does not ask, as in the driver, which ends when the host ends. */
static int wait_for_turn(struct shared *shared, struct channel *channel, uint32_t turn,
                         int (*is_there)(void)) {
    if (spin(shared, channel, turn))
        return 1;
    uint32_t other = turn ^ DRIVER, asleep = other | ASLEEP;
    for (;;) {
        uint32_t found = other;
        if (!atomic_compare_exchange_strong(&channel->turn, &found, asleep) && found != asleep)
            return 1;
        struct timespec time = {0, SLEEP_NANOSECONDS};
        syscall(SYS_futex, &channel->turn, FUTEX_WAIT, asleep, is_there ? &time : NULL, NULL, 0);
        if (is_there && atomic_load(&channel->turn) == asleep && !is_there())
            return 0;
    }
}

/* The driver's side, which Python calls: it does not wait for the host's end, by which all ends. */

EXPORT void npu_driver_give_turn(struct channel *channel) {
    hand_over(channel, HOST);
}

EXPORT void npu_driver_await_turn(struct shared *shared, struct channel *channel) {
    wait_for_turn(shared, channel, DRIVER, NULL);
}

EXPORT void npu_driver_take_turns(struct shared *shared, struct channel *channel) {
    hand_over(channel, HOST);
    wait_for_turn(shared, channel, DRIVER, NULL);
}
