/* A Level Zero with one NPU that takes graphs and creates none: libze_loader.so.1 for OpenVINO's own
   NPU plugin, to see what of a blob it would give to a driver. See real_plugin.py.

   Structures are those of the public headers of Level Zero and its NPU extensions, by offset. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t Result;

enum { SUCCESS = 0, NOT_HERE = 0x78000003, UNINITIALIZED = 0x78000001 };

static int driver, device, context;

/* What pfnCreate2 was given last. */
uint64_t given_size;
uint8_t *given_bytes;

/* Fills slots of extensions' tables, and takes the place of what this plugin looks up and a blob
   never comes to. */
static Result nothing(void) { return SUCCESS; }

struct graph_desc_2 {
    uint32_t stype;
    const void *next;
    uint32_t format;
    size_t size;
    const uint8_t *input;
};

static Result create_2(void *in, void *on, const struct graph_desc_2 *desc, void **graph) {
    (void)in, (void)on, (void)graph;
    free(given_bytes);
    given_bytes = malloc(desc->size + 1);
    memcpy(given_bytes, desc->input, desc->size);
    given_size = desc->size;
    return UNINITIALIZED; /* the plugin tells its caller so, and needs no graph */
}

enum { SLOTS = 96, CREATE_2 = 16 };
static void *table[SLOTS];

Result zelGetLoaderVersion(void *version) { (void)version; return NOT_HERE; }

Result zelLoaderGetVersions(size_t *count, void *versions) {
    (void)count, (void)versions;
    return NOT_HERE;
}

Result zeDriverGet(uint32_t *count, void **drivers) {
    *count = 1;
    if (drivers) drivers[0] = &driver;
    return SUCCESS;
}

Result zeDriverGetProperties(void *of, uint8_t *properties) {
    static const uint8_t npu[16] = {0x01, 0x7d, 0xe9, 0x31, 0x6b, 0x4d, 0x4f, 0xd4,
                                    0xaa, 0x9b, 0x5b, 0xed, 0x77, 0xfc, 0x8e, 0x89};
    (void)of;
    memcpy(properties + 16, npu, sizeof npu);
    return SUCCESS;
}

Result zeDriverGetApiVersion(void *of, uint32_t *version) {
    (void)of;
    *version = 1 << 16 | 13;
    return SUCCESS;
}

struct extension {
    char name[256];
    uint32_t version;
};

Result zeDriverGetExtensionProperties(void *of, uint32_t *count, struct extension *extensions) {
    static const struct extension known[] = {{"ZE_extension_graph", 1 << 16 | 14},
                                             {"ZE_extension_profiling_data", 1 << 16}};
    (void)of;
    *count = 2;
    if (extensions) memcpy(extensions, known, sizeof known);
    return SUCCESS;
}

Result zeDriverGetExtensionFunctionAddress(void *of, const char *name, void **address) {
    (void)of, (void)name;
    for (int slot = 0; slot < SLOTS; ++slot) table[slot] = (void *)nothing;
    table[CREATE_2] = (void *)create_2;
    *address = table;
    return SUCCESS;
}

Result zeDeviceGet(void *of, uint32_t *count, void **devices) {
    (void)of;
    *count = 1;
    if (devices) devices[0] = &device;
    return SUCCESS;
}

Result zeDeviceGetProperties(void *of, uint8_t *properties) {
    const uint32_t npu = 4, id = 0x643e, tiles = 6, slices = 1;
    (void)of;
    memcpy(properties + 16, &npu, 4);
    memcpy(properties + 24, &id, 4);
    memcpy(properties + 68, &tiles, 4);
    memcpy(properties + 72, &slices, 4);
    return SUCCESS;
}

Result zeDeviceGetCommandQueueGroupProperties(void *of, uint32_t *count, uint8_t *properties) {
    const uint32_t computes = 1, queues = 1;
    (void)of;
    *count = 1;
    if (properties) {
        memcpy(properties + 16, &computes, 4);
        memcpy(properties + 32, &queues, 4);
    }
    return SUCCESS;
}

Result zeContextCreate(void *of, const void *desc, void **made) {
    (void)of, (void)desc;
    *made = &context;
    return SUCCESS;
}

/* What the plugin looks up when it starts, or else does without the NPU. */
#define NOTHING(name) Result name(void) { return nothing(); }
NOTHING(zeCommandListAppendBarrier) NOTHING(zeCommandListAppendEventReset)
NOTHING(zeCommandListAppendImageCopy) NOTHING(zeCommandListAppendImageCopyFromMemory)
NOTHING(zeCommandListAppendImageCopyToMemory) NOTHING(zeCommandListAppendLaunchKernel)
NOTHING(zeCommandListAppendMemoryCopy) NOTHING(zeCommandListAppendMemoryFill)
NOTHING(zeCommandListAppendSignalEvent) NOTHING(zeCommandListAppendWaitOnEvents)
NOTHING(zeCommandListAppendWriteGlobalTimestamp) NOTHING(zeCommandListClose)
NOTHING(zeCommandListCreate) NOTHING(zeCommandListCreateImmediate) NOTHING(zeCommandListDestroy)
NOTHING(zeCommandListGetNextCommandIdExp) NOTHING(zeCommandListHostSynchronize)
NOTHING(zeCommandListReset) NOTHING(zeCommandListUpdateMutableCommandsExp)
NOTHING(zeCommandQueueCreate) NOTHING(zeCommandQueueDestroy)
NOTHING(zeCommandQueueExecuteCommandLists) NOTHING(zeContextDestroy)
NOTHING(zeDeviceGetCacheProperties) NOTHING(zeDeviceGetComputeProperties)
NOTHING(zeDeviceGetExternalMemoryProperties) NOTHING(zeDeviceGetImageProperties)
NOTHING(zeDeviceGetMemoryAccessProperties) NOTHING(zeDeviceGetMemoryProperties)
NOTHING(zeDeviceGetModuleProperties) NOTHING(zeDeviceGetRuntimeRequirements)
NOTHING(zeDeviceGetRuntimeRequirementsKey) NOTHING(zeDeviceGetStatus) NOTHING(zeDeviceGetSubDevices)
NOTHING(zeDevicePciGetPropertiesExt) NOTHING(zeDeviceValidateRuntimeRequirements)
NOTHING(zeEventCreate) NOTHING(zeEventDestroy) NOTHING(zeEventHostReset) NOTHING(zeEventHostSignal)
NOTHING(zeEventHostSynchronize) NOTHING(zeEventPoolCreate) NOTHING(zeEventPoolDestroy)
NOTHING(zeEventQueryKernelTimestamp) NOTHING(zeEventQueryStatus) NOTHING(zeFenceCreate)
NOTHING(zeFenceDestroy) NOTHING(zeFenceHostSynchronize) NOTHING(zeFenceReset) NOTHING(zeImageCreate)
NOTHING(zeImageDestroy) NOTHING(zeInit) NOTHING(zeInitDrivers) NOTHING(zeKernelCreate)
NOTHING(zeKernelDestroy) NOTHING(zeKernelSetArgumentValue) NOTHING(zeKernelSetGroupSize)
NOTHING(zeMemAllocDevice) NOTHING(zeMemAllocHost) NOTHING(zeMemAllocShared) NOTHING(zeMemFree)
NOTHING(zeMemGetAddressRange) NOTHING(zeMemGetAllocProperties) NOTHING(zeModuleBuildLogDestroy)
NOTHING(zeModuleBuildLogGetString) NOTHING(zeModuleCreate) NOTHING(zeModuleDestroy)
NOTHING(zeModuleGetKernelNames) NOTHING(zeModuleGetNativeBinary) NOTHING(zeSetWorkloadType)
NOTHING(zelSetDriverTeardown)
