/* The border's C side: starts Python on the first call, then passes every call on.
 *
 * Nothing here depends on the version of Python: its functions are looked up by name, in this
 * process or in the shared library of the installation that this file was built for. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#define EXPORT __attribute__((visibility("default")))
#define SUCCESS 0u
#define UNINITIALIZED 0x78000001u
#define UNSUPPORTED_VERSION 0x78000002u
#define UNSUPPORTED_FEATURE 0x78000003u
#define INVALID_NULL_POINTER 0x78000007u
#define UNKNOWN 0x7ffffffeu
#define INTERRUPTED 0xffffffffu /* a signal's handler raised: Python handles it again, later */
#define VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))
#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef uint32_t (*dispatch_t)(uint32_t function, const uint64_t *arguments);

struct entry {
    uint32_t since;
    const void *function;
};

extern const void *const *const tables[];

/* What Python sees of this library: ``driver_layer.c_abi.serve`` sets dispatch and ended. */
static struct front {
    _Atomic(dispatch_t) dispatch;
    const void *const *const *tables; /* function tables of the extensions */
    const char *key;                  /* digest of the description that both sides were made of */
    _Atomic(uint32_t) ended;          /* the interpreter ends: no calls any more */
    _Atomic(uint32_t) active;         /* number of calls that run */
} front = {NULL, tables, KEY, 0, 0};

static struct {
    int (*is_initialized)(void);
    wchar_t *(*decode)(const char *, size_t *);
    void (*set_program_name)(const wchar_t *);
    void (*initialize)(int);
    void *(*release_thread)(void);
    int (*acquire)(void);
    void (*release)(int);
    int (*run)(const char *);
    void (*interrupt)(void);
    int started; /* by this library */
} python;

static int look_up(void) {
    static const struct {
        const char *name;
        size_t offset;
    } names[] = {
        {"Py_IsInitialized", offsetof(__typeof__(python), is_initialized)},
        {"Py_DecodeLocale", offsetof(__typeof__(python), decode)},
        {"Py_SetProgramName", offsetof(__typeof__(python), set_program_name)},
        {"Py_InitializeEx", offsetof(__typeof__(python), initialize)},
        {"PyEval_SaveThread", offsetof(__typeof__(python), release_thread)},
        {"PyGILState_Ensure", offsetof(__typeof__(python), acquire)},
        {"PyGILState_Release", offsetof(__typeof__(python), release)},
        {"PyRun_SimpleString", offsetof(__typeof__(python), run)},
        {"PyErr_SetInterrupt", offsetof(__typeof__(python), interrupt)},
    };
    void *library = RTLD_DEFAULT;
    if (dlsym(RTLD_DEFAULT, names[0].name) == NULL)
        library = dlopen(LIBPYTHON, RTLD_NOW | RTLD_GLOBAL); /* global: extension modules need it */
    if (library == NULL && dlsym(RTLD_DEFAULT, names[0].name) == NULL) {
        fprintf(stderr, "driver_layer: no Python in this process, and none at '%s': %s\n",
                LIBPYTHON, dlerror());
        return 0;
    }
    for (size_t i = 0; i < COUNT(names); i++)
        *(void **)((char *)&python + names[i].offset) = dlsym(library, names[i].name);
    return python.is_initialized != NULL && python.acquire != NULL;
}

/* Return whether this process has a Python that this library can run in; start one if it has none.
 * The lock is never held while Python's lock is acquired, so the two cannot block each other. */
static int have_python(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    int found = python.acquire != NULL || look_up();
    if (found && !python.is_initialized()) {
        if (python.set_program_name != NULL)
            python.set_program_name(python.decode(PYTHON, NULL));
        python.initialize(0); /* 0: the host's signal handlers stay */
        python.release_thread();
        python.started = 1;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static int start(void) {
    if (!have_python())
        return 0;
    static const char start_python[] = START;
    char code[sizeof start_python + 32];
    snprintf(code, sizeof code, start_python, (unsigned long long)(uintptr_t)&front, python.started);
    int state = python.acquire();
    python.run(code); /* its errors are logged, and leave dispatch unset */
    python.release(state);
    return atomic_load(&front.dispatch) != NULL;
}

/* Call a function by its number; after_end is the result once Python has ended, and with it all that
 * could be released. */
static uint32_t call(uint32_t function, const uint64_t *arguments, uint32_t after_end) {
    uint32_t result = UNINITIALIZED;
    atomic_fetch_add(&front.active, 1); /* first: who sets ended waits for those it may not see */
    if (atomic_load(&front.ended))
        result = after_end;
    else if (atomic_load(&front.dispatch) != NULL || start())
        result = atomic_load(&front.dispatch)(function, arguments);
    atomic_fetch_sub(&front.active, 1);
    if (result == INTERRUPTED) {
        python.interrupt();
        result = UNKNOWN;
    }
    return result;
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
    return atomic_load(&front.ended) != 0;
}

EXPORT uint32_t zelSetDriverTeardown(void) {
    return SUCCESS;
}

EXPORT void zelSetDelayLoaderContextTeardown(void) {}

EXPORT void zelLoaderContextTeardown(void) {}
