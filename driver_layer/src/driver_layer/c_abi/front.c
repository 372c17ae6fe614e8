/* The border's C side, in the process that calls: hands every call to the driver's process.
 *
 * The driver runs in a process of its own, which the first call starts. Each thread that calls has a
 * channel, a record in memory that both processes map, on which the two sides take turns: the host
 * writes a call, the driver may ask for something that only the host can do (map memory, say), and
 * at last answers. A call thus never needs a lock or an interpreter of the process that it is made
 * in, and a signal waits until the call has its result. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
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
#define SPIN_NANOSECONDS 20000 /* a sleeping process needs longer to wake */
#define SLEEP_NANOSECONDS 100000000
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

extern char **environ;

struct entry {
    uint32_t since;
    const void *function;
};

extern const void *const *const tables[];

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

enum state { NOT_STARTED, RUNNING, FAILED, LOST };

static struct {
    pthread_mutex_t lock; /* of all that follows */
    _Atomic uint32_t state;
    int control;                /* its end is the other process's end */
    struct stat control_status; /* by which another file of the same number is recognised */
    struct shared *shared;
    pthread_key_t leaving;
    _Atomic uint32_t forked; /* this process's parent had a driver */
    uint8_t taken[CHANNELS];
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread struct channel *own;

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Return how many threads may spin: the processors are for those that work. */
static uint32_t most_spinning(void) {
    static _Atomic uint32_t found = UINT32_MAX;
    if (found == UINT32_MAX) {
        cpu_set_t set;
        found = sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) / 2 : 0;
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

/* Return whether the control socket is still there: a program may close all its files. */
static int has_control(void) {
    struct stat now;
    return fstat(driver.control, &now) == 0 && now.st_ino == driver.control_status.st_ino &&
           now.st_dev == driver.control_status.st_dev;
}

static int has_driver(void) {
    char byte;
    uint32_t process = driver.shared->driver;
    return has_control() && recv(driver.control, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0 &&
           !atomic_load(&driver.shared->ended) &&
           (process == 0 || kill((pid_t)process, 0) == 0 || errno != ESRCH);
}

/* Wait for a turn; false if the other process has ended. The driver, which ends by itself when the
 * host has ended, does not look. */
static int wait_for_turn(struct shared *shared, struct channel *channel, uint32_t turn) {
    if (spin(shared, channel, turn))
        return 1;
    uint32_t other = turn ^ DRIVER, asleep = other | ASLEEP;
    for (;;) {
        uint32_t found = other;
        if (!atomic_compare_exchange_strong(&channel->turn, &found, asleep) && found != asleep)
            return 1;
        struct timespec time = {0, SLEEP_NANOSECONDS};
        syscall(SYS_futex, &channel->turn, FUTEX_WAIT, asleep, turn == HOST ? &time : NULL, NULL, 0);
        if (turn == HOST && atomic_load(&channel->turn) == asleep && !has_driver())
            return 0;
    }
}

/* The driver's side, which Python calls: it does not wait for the host's end, by which all ends. */

EXPORT void npu_driver_give_turn(struct channel *channel) {
    hand_over(channel, HOST);
}

EXPORT void npu_driver_await_turn(struct shared *shared, struct channel *channel) {
    wait_for_turn(shared, channel, DRIVER);
}

EXPORT void npu_driver_take_turns(struct shared *shared, struct channel *channel) {
    hand_over(channel, HOST);
    wait_for_turn(shared, channel, DRIVER);
}

/* Requests of the driver. A file is one of the driver's process, by its descriptor there. */

static int open_file(uint64_t descriptor, int mode) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/fd/%u", driver.shared->driver, (unsigned)descriptor);
    return open(path, mode | O_CLOEXEC);
}

static void *map(uint64_t descriptor, uint64_t size, uint64_t writable) {
    int file = open_file(descriptor, writable ? O_RDWR : O_RDONLY);
    if (file < 0)
        return MAP_FAILED;
    int protection = PROT_READ | (writable ? PROT_WRITE : 0);
    void *found = mmap(NULL, size, protection, MAP_SHARED, file, 0);
    int error = errno;
    close(file);
    errno = error;
    return found;
}

/* Carry out a request; the result is 0, or the number of an error. */
static uint32_t carry_out(uint32_t request, uint64_t *words) {
    int64_t found = -1;
    errno = 0;
    if (request == MAP)
        found = (int64_t)(intptr_t)map(words[0], words[1], words[2]);
    else if (request == UNMAP)
        found = munmap((void *)(uintptr_t)words[0], words[1]);
    else if (request == POPULATE)
        found = madvise((void *)(uintptr_t)words[0], words[1],
                        words[2] ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    else if (request == OPEN)
        found = open_file(words[0], O_RDWR);
    else if (request == CLOSE)
        found = close((int)words[0]);
    words[0] = (uint64_t)found;
    return found == -1 ? (uint32_t)errno : 0;
}

/* Take turns with the driver until it answers; false if it has ended. */
static int exchange(struct channel *channel, uint32_t request) {
    int error = errno;
    channel->request = request;
    for (;;) {
        hand_over(channel, DRIVER);
        if (!wait_for_turn(driver.shared, channel, HOST)) {
            if (atomic_exchange(&driver.state, LOST) == RUNNING)
                fprintf(stderr, "driver_layer: the driver's process has ended: the device is lost; "
                                "start the program again\n");
            return 0;
        }
        if (channel->request == ANSWER)
            break;
        channel->result = carry_out(channel->request, channel->words);
    }
    errno = error;
    return 1;
}

static void leave(void *channel) {
    if (driver.state == RUNNING && exchange(channel, LEAVE)) {
        pthread_mutex_lock(&driver.lock);
        driver.taken[(struct channel *)channel - driver.shared->channels] = 0;
        pthread_mutex_unlock(&driver.lock);
    }
    own = NULL;
}

/* Begin anew in a forked process, which has neither the threads nor the driver of its parent. */
static void forget(void) {
    pthread_mutex_init(&driver.lock, NULL);
    if (driver.state != NOT_STARTED) {
        if (has_control())
            close(driver.control);
        munmap(driver.shared, sizeof *driver.shared);
        pthread_setspecific(driver.leaving, NULL);
    }
    memset(driver.taken, 0, sizeof driver.taken);
    driver.state = NOT_STARTED;
    driver.forked = 1;
    own = NULL;
}

/* Tell once why a forked process finds its parent's objects invalid. */
static void explain_fork(void) {
    if (atomic_exchange(&driver.forked, 0))
        fprintf(stderr, "driver_layer: this process was forked from one that uses the NPU, whose "
                        "objects it does not have; start it otherwise, as multiprocessing's spawn "
                        "does, or use the NPU first after the fork\n");
}

/* Start the driver's process; its own first child goes on, so that this process has no child more
 * that a wait for all children would wait for. Return the number of an error. */
static int spawn(int control, int memory) {
    static const char start[] = START;
    Dl_info library = {0};
    dladdr((const void *)&spawn, &library);
    const char *arguments[] = {PYTHON, "-I", "-c", start, library.dli_fname, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, control, 3);
    posix_spawn_file_actions_adddup2(&files, memory, 4);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSID /* away from the terminal's keys */);
    pid_t process;
    int error = posix_spawn(&process, PYTHON, &files, &attributes, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    while (error == 0 && waitpid(process, NULL, 0) < 0 && errno == EINTR)
        ;
    return error;
}

/* Make a descriptor that the numbers of the other process's descriptors, 3 and 4, do not hide. */
static int high(int descriptor) {
    int found = fcntl(descriptor, F_DUPFD_CLOEXEC, 5);
    close(descriptor);
    return found;
}

static int start(void) {
    int ends[2];
    int memory = memfd_create("npu-driver", MFD_CLOEXEC);
    if (memory < 0 || ftruncate(memory, sizeof *driver.shared) != 0 ||
        (driver.shared = mmap(NULL, sizeof *driver.shared, PROT_READ | PROT_WRITE, MAP_SHARED,
                              memory, 0)) == MAP_FAILED ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        fprintf(stderr, "driver_layer: no memory to share with the driver: %s\n", strerror(errno));
        return 0;
    }
    strncpy(driver.shared->key, KEY, sizeof driver.shared->key - 1);
    driver.shared->tables = tables;
    driver.shared->host = (uint32_t)getpid();
    atomic_store(&driver.shared->ready.turn, DRIVER);
    driver.control = ends[0];
    fstat(driver.control, &driver.control_status);
    int theirs = high(ends[1]);
    memory = high(memory);
    int error = theirs < 0 || memory < 0 ? EMFILE : spawn(theirs, memory);
    close(theirs);
    close(memory);
    if (error != 0)
        fprintf(stderr, "driver_layer: Python does not start from '%s': %s\n", PYTHON,
                strerror(error));
    struct channel *ready = &driver.shared->ready;
    if (error != 0 || !wait_for_turn(driver.shared, ready, HOST))
        return 0; /* the other process has said why */
#ifdef PR_SET_PTRACER
    prctl(PR_SET_PTRACER, driver.shared->driver, 0, 0, 0); /* it reads what calls point to */
#endif
    hand_over(ready, DRIVER);
    if (!wait_for_turn(driver.shared, ready, HOST))
        return 0;
    return 1;
}

static void prepare(void) {
    pthread_key_create(&driver.leaving, leave);
    pthread_atfork(NULL, NULL, forget);
}

/* Take a free channel, whose turn is the host's, and have a thread of the driver serve it. */
static struct channel *take_channel(void) {
    uint32_t index = 0;
    while (index < CHANNELS && driver.taken[index])
        index++;
    if (index == CHANNELS)
        return NULL;
    struct channel *channel = &driver.shared->channels[index];
    channel->thread = (uint32_t)syscall(SYS_gettid);
    if (!has_control() || send(driver.control, &index, sizeof index, MSG_NOSIGNAL) < 0)
        return NULL;
    driver.taken[index] = 1;
    pthread_setspecific(driver.leaving, channel);
    return channel;
}

/* Return this thread's channel; NULL, and why, if it has none. */
static struct channel *channel_of_thread(uint32_t *failure) {
    if (own != NULL)
        return own;
    static pthread_once_t prepared = PTHREAD_ONCE_INIT;
    pthread_once(&prepared, prepare);
    pthread_mutex_lock(&driver.lock);
    if (driver.state == NOT_STARTED)
        driver.state = start() ? RUNNING : FAILED;
    if (driver.state == RUNNING)
        own = take_channel();
    *failure = driver.state == RUNNING ? OUT_OF_HOST_MEMORY
               : driver.state == LOST  ? DEVICE_LOST
                                       : UNINITIALIZED;
    pthread_mutex_unlock(&driver.lock);
    return own;
}

/* Call a function by its number. A release succeeds without a driver, which took all with it. */
static uint32_t call(uint32_t function, const uint64_t *arguments, uint32_t count, int releases) {
    uint32_t failure = DEVICE_LOST;
    struct channel *channel = channel_of_thread(&failure);
    if (channel != NULL && driver.state == RUNNING) {
        memcpy(channel->words, arguments, count * sizeof *arguments);
        if (exchange(channel, function)) {
            if (channel->result == INVALID_ARGUMENT)
                explain_fork();
            return channel->result;
        }
    }
    return releases ? SUCCESS : failure;
}

static uint32_t unsupported(void) {
    return UNSUPPORTED_FEATURE;
}

static uint32_t fill(const struct entry *entries, size_t count, uint32_t version, const void **table) {
    if (table == NULL)
        return INVALID_NULL_POINTER;
    if (version >> 16 != 1)
        return UNSUPPORTED_VERSION;
    for (size_t i = 0; i < count; i++)
        if (entries[i].since <= version)
            table[i] = entries[i].function;
    return SUCCESS;
}

/* The loader's own functions: this library stands in for a loader of the version that brought
 * specification 1.17. Source: docs/reference/level_zero.md#loaders-and-function-tables. */

typedef struct {
    char component_name[64];
    uint32_t spec_version;
    struct {
        int major, minor, patch;
    } version;
} zel_component_version_t;

static const zel_component_version_t loader = {"loader", VERSION(1, 17), {1, 32, 0}};

EXPORT uint32_t zelGetLoaderVersion(zel_component_version_t *version) {
    if (version == NULL)
        return INVALID_NULL_POINTER;
    *version = loader;
    return SUCCESS;
}

EXPORT uint32_t zelLoaderGetVersions(size_t *count, zel_component_version_t *versions) {
    if (count == NULL)
        return INVALID_NULL_POINTER;
    if (versions != NULL && *count > 0)
        versions[0] = loader;
    *count = 1;
    return SUCCESS;
}

EXPORT uint32_t zelLoaderTranslateHandle(uint32_t type, void *handle, void **translated) {
    (void)type;
    if (translated == NULL)
        return INVALID_NULL_POINTER;
    *translated = handle;
    return SUCCESS;
}

EXPORT uint8_t zelCheckIsLoaderInTearDown(void) {
    return 0; /* the driver's process lives until this one has ended */
}

EXPORT uint32_t zelSetDriverTeardown(void) {
    return SUCCESS;
}

EXPORT void zelSetDelayLoaderContextTeardown(void) {}

EXPORT void zelLoaderContextTeardown(void) {}
