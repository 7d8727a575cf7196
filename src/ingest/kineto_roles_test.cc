#include "ingest/kineto_roles.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ingest/kineto.h"

namespace assay {
namespace {

// A trace put together row by row, as the reader would deliver it.
class Build {
 public:
  Build() { trace.strings.emplace_back(); }

  uint32_t text(const std::string& s) {
    trace.strings.push_back(s);
    return static_cast<uint32_t>(trace.strings.size() - 1);
  }
  int32_t host(const std::string& name, HostKind kind = HostKind::kOp, int32_t parent = -1) {
    HostEvent e;
    e.name = text(name);
    e.kind = kind;
    e.parent = parent;
    trace.host.push_back(e);
    return static_cast<int32_t>(trace.host.size()) - 1;
  }
  // A kernel launched inside a host event; -1: by a call that nothing surrounds.
  size_t launched(const std::string& kernel, int32_t in, int32_t stream,
                  const std::string& api = "cudaLaunchKernel") {
    RuntimeEvent call;
    call.name = text(api);
    call.host = in;
    trace.runtime.push_back(call);
    const size_t k = orphan(kernel, stream);
    trace.device[k].launch = static_cast<int32_t>(trace.runtime.size()) - 1;
    trace.device[k].op = in;
    return k;
  }
  size_t orphan(const std::string& kernel, int32_t stream) {
    DeviceEvent e;
    e.name = text(kernel);
    e.stream = stream;
    e.start_ns = static_cast<int64_t>(trace.device.size()) * 10;
    e.duration_ns = 5;
    trace.device.push_back(e);
    return trace.device.size() - 1;
  }
  bool communicates(size_t k) const { return trace.device[k].role == Role::kCommunication; }

  Trace trace;
};

TEST(Roles, NamesOfKernels) {
  for (const char* name :
       {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "rcclGenericKernel",
        "void deep_ep::internode::dispatch<false, 16>", "multimem_all_reduce_kernel<__nv_bfloat16>",
        "void vllm::cross_device_reduce_2stage<__half, 8>(...)",
        "void tensorrt_llm::kernels::oneShotAllReduceKernel<__half>", "hccl_all_gather_k",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<...>",
        "nvshmemi_transfer_rma_nbi", "void one_shot_all_reduce_kernel<float>"}) {
    EXPECT_TRUE(names_communication_kernel(name)) << name;
  }
  for (const char* name :
       {"sm90_xmma_gemm_bf16bf16_bf16f32", "triton_poi_fused_all_gather_into_tensor_add_3",
        "triton_red_fused_all_reduce_mul_0", "void at::native::reduce_kernel<512, 1>",
        "void at::native::vectorized_elementwise_kernel<4, AddFunctor>", "reduce_1Block_kernel",
        "void cub::DeviceScanKernel", "_Z9broadcastPf", "Memset (Device)"}) {
    EXPECT_FALSE(names_communication_kernel(name)) << name;
  }
}

TEST(Roles, NamesOfOps) {
  for (const char* name :
       {"record_param_comms", "c10d::allreduce_", "_c10d_functional::all_gather_into_tensor",
        "nccl:all_reduce", "nccl:_all_gather_base", "vllm::all_reduce",
        "symm_mem::multimem_all_reduce_", "sglang::reg_all_gather_into_tensor"}) {
    EXPECT_TRUE(names_collective_op(name)) << name;
  }
  for (const char* name :
       {"aten::mm", "aten::sum", "symm_mem::fused_all_gather_matmul", "forward",
        "fsdp::all_gather_copy_in", "all_reduce_my_loss", "DistributedDataParallel.forward"}) {
    EXPECT_FALSE(names_collective_op(name)) << name;
  }
}

TEST(Roles, AnUnknownKernelUnderACollectiveOpCommunicates) {
  Build b;
  const int32_t op = b.host("c10d::allreduce_");
  const int32_t params = b.host("record_param_comms", HostKind::kOp, op);
  b.trace.collectives.emplace_back();
  b.trace.host[static_cast<size_t>(params)].collective = 0;
  const int32_t range = b.host("nccl:all_reduce", HostKind::kAnnotation, params);
  const size_t direct = b.launched("mystery_ring", range, 20);
  const int32_t frame = b.host("launch.py(3): run", HostKind::kPython, range);
  const size_t framed = b.launched("mystery_ring", frame, 21);
  // What the op does through another op is work of this device.
  const int32_t flatten = b.host("aten::cat", HostKind::kOp, op);
  const size_t copied = b.launched("CatArrayBatchedCopy", flatten, 7);
  const size_t nan_check = b.launched("void c10d::checkForNaN<float>", params, 7);
  const size_t plain = b.launched("mystery_ring", b.host("aten::mm"), 7);
  const size_t odd_name = b.launched("enormous_convoy_kernel", params, 22);
  assign_roles(b.trace);
  EXPECT_TRUE(b.communicates(odd_name));
  EXPECT_TRUE(b.communicates(direct));
  EXPECT_EQ(b.trace.device[direct].collective, 0);
  EXPECT_TRUE(b.communicates(framed));
  EXPECT_FALSE(b.communicates(copied));
  EXPECT_FALSE(b.communicates(nan_check));
  EXPECT_FALSE(b.communicates(plain));
}

TEST(Roles, AStreamOfCollectivesSpeaksForTheRestOfIt) {
  Build b;
  b.orphan("ncclDevKernel_AllReduce", 20);
  const size_t alone = b.orphan("mystery", 20);
  const size_t graph = b.launched("mystery", b.host("aten::mm"), 20, "cudaGraphLaunch");
  b.orphan("ncclDevKernel_AllReduce", 30);
  const size_t shared = b.orphan("mystery", 30);
  b.orphan("sm90_gemm", 30);
  const size_t elsewhere = b.orphan("mystery", 40);
  b.orphan("ncclDevKernel_AllReduce", 50);
  const size_t by_op = b.launched("mystery", b.host("aten::mul"), 50);
  const size_t beside = b.orphan("mystery", 50);
  // A custom op proves nothing either way; a stream full of unknown kernels is not of one kind.
  b.orphan("ncclDevKernel_AllReduce", 60);
  const size_t custom = b.launched("mystery", b.host("mylib::exchange"), 60);
  b.orphan("ncclDevKernel_AllReduce", 70);
  size_t among_many = 0;
  for (int i = 0; i < 50; ++i) among_many = b.orphan("mystery", 70);
  assign_roles(b.trace);
  EXPECT_TRUE(b.communicates(alone));
  EXPECT_TRUE(b.communicates(graph));
  EXPECT_FALSE(b.communicates(shared));
  EXPECT_FALSE(b.communicates(elsewhere));
  EXPECT_FALSE(b.communicates(by_op));
  EXPECT_FALSE(b.communicates(beside));
  EXPECT_TRUE(b.communicates(custom));
  EXPECT_FALSE(b.communicates(among_many));
}

TEST(Roles, MetadataAndRangesOnTheDevice) {
  Build b;
  b.trace.collectives.emplace_back();
  const size_t stated = b.launched("mystery", b.host("aten::mm"), 7);
  b.trace.device[stated].collective = 0;
  const size_t before = b.orphan("mystery", 8);
  const size_t inside = b.orphan("mystery", 8);
  const size_t after = b.orphan("mystery", 8);
  b.orphan("sm90_gemm", 8);
  DeviceRange range;
  range.name = b.text("nccl:all_reduce");
  range.stream = 8;
  range.start_ns = b.trace.device[inside].start_ns;
  range.duration_ns = 5;
  b.trace.ranges.push_back(range);
  assign_roles(b.trace);
  EXPECT_TRUE(b.communicates(stated));
  EXPECT_FALSE(b.communicates(before));
  EXPECT_TRUE(b.communicates(inside));
  EXPECT_FALSE(b.communicates(after));
}

TEST(Roles, ThroughTheReader) {
  const std::string text = R"({"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 1,
     "dur": 9, "args": {"Collective name": "allreduce", "In msg nelems": 4096, "dtype": "Float",
     "Group size": 8, "Process Group Name": "2", "Process Group Ranks": "[0, 1, ...]", "Seq": 5}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cuLaunchKernelEx", "pid": 1, "tid": 1, "ts": 2,
     "dur": 3, "args": {"correlation": 4}},
    {"ph": "X", "cat": "kernel", "name": "mystery", "pid": 0, "tid": 9, "ts": 20, "dur": 3,
     "args": {"device": 0, "stream": 9, "correlation": 4}}]})";
  Diagnostics warnings;
  const Result<Trace> t = read_kineto_text(text, "t", warnings);
  ASSERT_TRUE(t);
  ASSERT_EQ(t->device.size(), 1u);
  EXPECT_EQ(t->device[0].role, Role::kCommunication);
  ASSERT_EQ(t->device[0].collective, 0);
  const CollectiveInfo& info = t->collectives[0];
  EXPECT_EQ(t->text(info.name), "allreduce");
  EXPECT_EQ(t->text(info.group), "2");
  EXPECT_EQ(t->text(info.group_ranks), "[0, 1, ...]");
  EXPECT_EQ(info.sequence, 5);
}

}  // namespace
}  // namespace assay
