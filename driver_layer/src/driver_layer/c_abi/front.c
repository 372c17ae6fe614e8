/* The border's C side: hands every call to the driver's process, and stands in for a loader. */

struct entry {
    uint32_t since;
    const void *function;
};

/* Tell once why a forked process finds its parent's objects invalid. */
static void explain_fork(void) {
    if (atomic_exchange(&driver.forked, 0))
        fprintf(stderr, "driver_layer: this process was forked from one that uses the NPU, whose "
                        "objects it does not have; start it otherwise, as multiprocessing's spawn "
                        "does, or use the NPU first after the fork\n");
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
