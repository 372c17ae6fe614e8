// A program without Python that runs a graph on the NPU: it finds the device as any program in C++
// does, by the functions of libze_loader.so.1 that it was linked with.
//
//     program FORMAT FILE INPUT OUTPUT COUNT
//
// FORMAT is 1 for a blob, 2 for a serialized model. Reads the file and the bytes of the graph's first
// argument, runs it COUNT times in a second thread, and writes the bytes of the second argument. Exits
// with 1 and the name of the call that failed.
//
// Structures are those of the public headers, by their fields.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

using Handle = void *;
using Result = uint32_t;

struct Desc {
    uint32_t stype;
    const void *next;
    uint32_t flags[6];
};

struct GraphDesc {
    uint32_t stype;
    const void *next;
    uint32_t format;
    size_t size;
    const uint8_t *input;
    const char *build_flags;
    uint32_t flags;
};

using Create = Result (*)(Handle, Handle, const GraphDesc *, Handle *);
using SetArgument = Result (*)(Handle, uint32_t, const void *);
using Append = Result (*)(Handle, Handle, Handle, Handle, uint32_t, Handle *);
using Destroy = Result (*)(Handle);

extern "C" {
Result zeInitDrivers(uint32_t *, Handle *, const Desc *);
Result zeDriverGetExtensionFunctionAddress(Handle, const char *, void **);
Result zeDeviceGet(Handle, uint32_t *, Handle *);
Result zeContextCreate(Handle, const Desc *, Handle *);
Result zeContextDestroy(Handle);
Result zeMemAllocHost(Handle, const Desc *, size_t, size_t, void **);
Result zeMemFree(Handle, void *);
Result zeCommandListCreate(Handle, Handle, const Desc *, Handle *);
Result zeCommandListClose(Handle);
Result zeCommandListDestroy(Handle);
Result zeCommandQueueCreate(Handle, Handle, const Desc *, Handle *);
Result zeCommandQueueExecuteCommandLists(Handle, uint32_t, Handle *, Handle);
Result zeCommandQueueSynchronize(Handle, uint64_t);
Result zeCommandQueueDestroy(Handle);
}

static void check(Result result, const char *call) {
    if (result != 0) {
        std::fprintf(stderr, "%s: %#x\n", call, result);
        std::exit(1);
    }
}
#define CHECK(call) check(call, #call)

static std::vector<char> content(const char *path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

int main(int count, char **words) {
    if (count != 6)
        return 2;
    const uint32_t format = std::atoi(words[1]);
    const auto file = content(words[2]);
    const auto input = content(words[3]);
    Desc npu = {0x20021, nullptr, {2}};
    uint32_t one = 1;
    Handle driver, device, context, graph, list, queue;
    CHECK(zeInitDrivers(&one, &driver, &npu));
    CHECK(zeDeviceGet(driver, &one, &device));
    void **table;
    CHECK(zeDriverGetExtensionFunctionAddress(driver, "ZE_extension_graph", (void **)&table));
    Desc desc = {0xd, nullptr, {0}};
    CHECK(zeContextCreate(driver, &desc, &context));

    GraphDesc from_file = {0xE, nullptr, format, file.size(), (const uint8_t *)file.data(), "", 0};
    CHECK(((Create)table[16])(context, device, &from_file, &graph)); // pfnCreate2
    void *x, *y;
    const size_t room = 1 << 16;
    desc = {0x16, nullptr, {0}};
    CHECK(zeMemAllocHost(context, &desc, room, 0, &x));
    CHECK(zeMemAllocHost(context, &desc, room, 0, &y));
    std::memcpy(x, input.data(), input.size());
    CHECK(((SetArgument)table[4])(graph, 0, x)); // pfnSetArgumentValue
    CHECK(((SetArgument)table[4])(graph, 1, y));

    desc = {0xf, nullptr, {0}};
    CHECK(zeCommandListCreate(context, device, &desc, &list));
    CHECK(((Append)table[6])(list, graph, nullptr, nullptr, 0, nullptr)); // pfnAppendGraphExecute
    CHECK(zeCommandListClose(list));
    desc = {0xe, nullptr, {0}};
    CHECK(zeCommandQueueCreate(context, device, &desc, &queue));
    std::thread([&] {
        for (int i = std::atoi(words[5]); i > 0; i--) {
            CHECK(zeCommandQueueExecuteCommandLists(queue, 1, &list, nullptr));
            CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX));
        }
    }).join();

    std::ofstream(words[4], std::ios::binary).write((const char *)y, room);
    CHECK(zeCommandQueueDestroy(queue));
    CHECK(zeCommandListDestroy(list));
    CHECK(((Destroy)table[1])(graph)); // pfnDestroy
    CHECK(zeMemFree(context, x));
    CHECK(zeMemFree(context, y));
    CHECK(zeContextDestroy(context));
}
