// Threads of a program without Python that use OpenVINO's NPU plugin at once, as plugin_threads.py.
//
//     npu-run -- ./plugin_threads MODEL.xml THREADS

#include <openvino/openvino.hpp>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <thread>
#include <vector>

namespace {

constexpr int turns = 5;
constexpr size_t count = 3 * 32 * 32;

void check(const ov::Tensor& tensor, float scale) {
    const float* values = tensor.data<float>();
    for (size_t i = 0; i < count; i++)
        if (std::fabs(values[i] - scale) > 1e-2f * scale) {
            std::cerr << "element " << i << " is " << values[i] << ", not " << scale << "\n";
            std::_Exit(1);
        }
}

void fill(ov::Tensor tensor, float value) {
    std::fill_n(tensor.data<float>(), count, value);
}

}  // namespace

int main(int, char** arguments) {
    ov::Core core;
    auto model = core.read_model(arguments[1]);
    auto compiled = core.compile_model(model, "NPU");
    auto infer = [&](ov::CompiledModel& from) {
        auto request = from.create_infer_request();
        for (float scale : {1.f, 2.f, 4.f}) {
            fill(request.get_input_tensor(), scale);
            request.infer();
            check(request.get_output_tensor(), scale);
        }
    };
    auto create = [&] { compiled.create_infer_request().infer(); };
    auto compile = [&] {
        auto mine = core.compile_model(model, "NPU");
        infer(mine);
    };
    auto free = [&] {
        for (int i = 0; i < 3; i++)
            fill(compiled.create_infer_request().get_input_tensor(), 0);
    };
    auto remote = [&] {
        auto context = core.get_default_context("NPU");
        auto x = context.create_host_tensor(ov::element::f32, compiled.input().get_shape());
        auto y = context.create_host_tensor(ov::element::f32, compiled.output().get_shape());
        auto request = compiled.create_infer_request();
        fill(x, 1);
        request.set_input_tensor(x);
        request.set_output_tensor(y);
        request.infer();
        check(y, 1);
    };
    auto repeat = [](std::function<void()> work, int times) {
        return [=] {
            for (int i = 0; i < times; i++)
                work();
        };
    };
    std::vector<std::function<void()>> works = {
        repeat(create, turns), repeat([&] { infer(compiled); }, turns), compile,
        repeat(free, turns), repeat(remote, turns)};
    int threads = std::atoi(arguments[2]);
    auto run = [&](std::function<void(int)> work) {
        std::vector<std::thread> all;
        for (int number = 0; number < threads; number++)
            all.emplace_back(work, number);
        for (auto& one : all)
            one.join();
    };
    for (auto& work : works)
        run([&](int) { work(); });
    run([&](int number) {
        for (size_t i = 0; i < works.size(); i++)
            works[(number + i) % works.size()]();
    });
    std::cout << "done" << std::endl;
}
