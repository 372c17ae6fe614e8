// Judge of blobs: the public NPU ELF library loads each one, in a process of its own.
//
//     public_elf_judge ARCH < list of files, one a line
//
// ARCH is the library's name of an architecture, e.g. VPUX37XX. For each file one line is written:
// "accepted", "refused: <the library's message>" or, if the library itself fails, "crashed: signal N".
// An architecture unknown to the library ends the judge with status 3.
//
// Device memory is host memory; a buffer's device address is its host address.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <vpux_hpi.hpp>

namespace {

constexpr int UNKNOWN_ARCHITECTURE = 3;
constexpr unsigned MAX_SECONDS = 10;
constexpr size_t MAX_BUFFER = size_t{1} << 32;

class HostMemory final : public elf::BufferManager {
public:
    elf::DeviceBuffer allocate(const elf::BufferSpecs& specs) override {
        const size_t align = specs.alignment < sizeof(void*) ? sizeof(void*) : specs.alignment;
        void* data = nullptr;
        const size_t size = specs.size != 0 ? specs.size : 1;
        if (size > MAX_BUFFER || posix_memalign(&data, align, size) != 0) {
            throw elf::AllocError("the judge's host memory has no such buffer");
        }
        std::memset(data, 0, size);
        const auto address = reinterpret_cast<uint64_t>(data);
        return elf::DeviceBuffer(static_cast<uint8_t*>(data), address, specs.size);
    }
    void deallocate(elf::DeviceBuffer& buffer) override {
        std::free(buffer.cpu_addr());
    }
    void lock(elf::DeviceBuffer&) override {
    }
    void unlock(elf::DeviceBuffer&) override {
    }
    size_t copy(elf::DeviceBuffer& to, const uint8_t* from, size_t count) override {
        std::memcpy(to.cpu_addr(), from, count);
        return count;
    }
};

// Memory for the tensors that the blob declares.
std::vector<elf::DeviceBuffer> user_buffers(HostMemory& memory, const std::vector<elf::DeviceBuffer>& declared) {
    std::vector<elf::DeviceBuffer> buffers;
    for (const auto& each : declared) {
        buffers.push_back(memory.allocate(elf::BufferSpecs(64, each.size(), 0)));
    }
    return buffers;
}

std::string judge(const std::vector<uint8_t>& blob, elf::platform::ArchKind arch) {
    HostMemory memory;
    try {
        elf::DDRAccessManager<elf::DDRNeverEmplace, elf::HybridBufferFactory> access(
                blob.data(), blob.size(), std::make_shared<elf::HybridBufferFactory>(&memory));
        elf::HPIConfigs configs;
        configs.archKind = arch;
        elf::HostParsedInference inference(&memory, &access, configs);
        inference.load();
        auto inputs = user_buffers(memory, inference.getInputBuffers());
        auto outputs = user_buffers(memory, inference.getOutputBuffers());
        auto profiling = user_buffers(memory, inference.getProfBuffers());
        inference.applyInputOutput(inputs, outputs, profiling);
        elf::HostParsedInference clone(inference);
    } catch (const std::exception& error) {
        return std::string("refused: ") + error.what();
    }
    return "accepted";
}

// Judge in a child: the library may crash or hang on a damaged blob.
std::string judge_apart(const std::vector<uint8_t>& blob, elf::platform::ArchKind arch) {
    int ends[2];
    if (pipe(ends) != 0) {
        return "crashed: no pipe";
    }
    const pid_t child = fork();
    if (child == 0) {
        alarm(MAX_SECONDS);
        const std::string verdict = judge(blob, arch);
        const bool whole = write(ends[1], verdict.data(), verdict.size()) == static_cast<ssize_t>(verdict.size());
        _exit(whole ? 0 : 1);
    }
    close(ends[1]);
    std::string verdict;
    char part[512];
    for (ssize_t count; (count = read(ends[0], part, sizeof part)) > 0;) {
        verdict.append(part, static_cast<size_t>(count));
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
        return "crashed: signal " + std::to_string(WTERMSIG(status));
    }
    for (char& each : verdict) {
        each = each == '\n' ? ' ' : each;
    }
    return verdict;
}

}  // namespace

int main(int argc, char** argv) {
    const auto arch = elf::platform::mapArchStringToArchKind(argc == 2 ? argv[1] : "");
    if (arch == elf::platform::ArchKind::UNKNOWN) {
        std::cerr << "the library knows no such architecture\n";
        return UNKNOWN_ARCHITECTURE;
    }
    for (std::string path; std::getline(std::cin, path);) {
        std::ifstream file(path, std::ios::binary);
        const std::vector<uint8_t> blob{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        std::cout << judge_apart(blob, arch) << std::endl;
    }
    return 0;
}
