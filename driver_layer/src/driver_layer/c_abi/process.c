/* The driver's process, as the host sees it: its start, its requests, its end.
 *
 * The first call starts it. A call never needs a lock or an interpreter of the process that it is
 * made in, and a signal waits until the call has its result. */

extern char **environ;
extern const void *const *const tables[]; /* function tables of the extensions */

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

/* Return whether the control socket is still there: a program may close all its files. */
static int has_control(void) {
    struct stat now;
    return fstat(driver.control, &now) == 0 && now.st_ino == driver.control_status.st_ino &&
           now.st_dev == driver.control_status.st_dev;
}

/* Return whether the driver's process is still there. */
static int has_driver(void) {
    char byte;
    uint32_t process = driver.shared->driver;
    return has_control() && recv(driver.control, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0 &&
           !atomic_load(&driver.shared->ended) &&
           (process == 0 || kill((pid_t)process, 0) == 0 || errno != ESRCH);
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
        if (!wait_for_turn(driver.shared, channel, HOST, has_driver)) {
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

/* Give back the channel of a thread that ends. */
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

/* Start the driver, and share memory with it; false if it does not serve. */
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
    if (error != 0 || !wait_for_turn(driver.shared, ready, HOST, has_driver))
        return 0; /* the other process has said why */
#ifdef PR_SET_PTRACER
    prctl(PR_SET_PTRACER, driver.shared->driver, 0, 0, 0); /* it reads what calls point to */
#endif
    hand_over(ready, DRIVER);
    return wait_for_turn(driver.shared, ready, HOST, has_driver);
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
