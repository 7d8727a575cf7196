#include <gtest/gtest.h>

#include "base/file.h"
#include "world/describe.h"
#include "world/model_size.h"

namespace assay {
namespace {

Model from_file(const std::string& name) {
  const std::string path = ASSAY_ROOT "/test/data/hf/" + name + ".json";
  const Result<std::string> text = read_file(path);
  EXPECT_TRUE(text) << path;
  const tl::expected<Model, Diagnostics> model = read_hf_config(text.value_or(""), path);
  EXPECT_TRUE(model) << (model ? "" : render(model.error()));
  return model ? *model : Model{};
}

struct Size {
  const char* file;
  double total, active;  // billions
};

// The families by the sizes their authors publish.
TEST(HfConfig, FamiliesHaveTheirPublishedSize) {
  const Size sizes[] = {
      {"llama", 8.03, 8.03},      {"mistral", 7.24, 7.24},   {"mixtral", 46.7, 12.9},
      {"deepseek_v3", 671, 37.5}, {"qwen3_moe", 30.5, 3.35}, {"gemma2", 9.24, 9.24},
      {"gemma3", 11.8, 11.8},     {"gpt2", 0.124, 0.124},    {"gpt_neox", 20.6, 20.6},
      {"bloom", 176.2, 176.2},    {"opt", 6.66, 6.66},       {"mpt", 6.65, 6.65},
      {"falcon", 6.92, 6.92},     {"gpt_oss", 116.8, 5.7},   {"grok", 314, 86},
      {"bert", 0.334, 0.334},     {"t5", 0.783, 0.783},      {"phi", 2.78, 2.78},
      {"llama4", 400.7, 17.2}};
  for (const Size& s : sizes) {
    const Model m = from_file(s.file);
    EXPECT_NEAR(parameters(m) / 1e9 / s.total, 1, 0.02) << s.file;
    EXPECT_NEAR(active_parameters(m) / 1e9 / s.active, 1, 0.03) << s.file;
  }
}

// Published configs of Gemma 3 state neither vocabulary nor, in the small ones, heads.
TEST(HfConfig, WhatTheClassImpliesIsFilled) {
  const auto m = read_hf_config(
      R"({"model_type":"gemma3","text_config":{"model_type":"gemma3_text","hidden_size":2560,
          "intermediate_size":10240,"num_hidden_layers":34,"sliding_window":1024}})",
      "config.json");
  ASSERT_TRUE(m) << render(m.error());
  EXPECT_NEAR(parameters(*m) / 1e9, 3.88, 0.08);  // 4B without its eyes
  EXPECT_FALSE(read_hf_config(R"({"model_type":"gemma3_text"})", "config.json"));
}

// Layers without attention would be predicted as if they had it.
TEST(HfConfig, MixedLayersAreRefused) {
  const std::string shape =
      R"("hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":4,
         "num_attention_heads":32,"vocab_size":65536)";
  for (const char* more :
       {R"("attn_layer_period":8)", R"("mamba_d_state":16)", R"("hybrid_override_pattern":"M-M*")",
        R"("layer_types":["linear_attention","full_attention"])", R"("layer_types":["conv"])"}) {
    const auto m = read_hf_config("{\"model_type\":\"x\"," + shape + "," + more + "}", "c.json");
    ASSERT_FALSE(m) << more;
    EXPECT_NE(render(m.error()).find("mixes attention"), std::string::npos) << more;
  }
  EXPECT_TRUE(read_hf_config("{" + shape + R"(,"layer_types":["full_attention"]})", "c.json"));
}

TEST(HfConfig, DetailsOfFamilies) {
  EXPECT_EQ(from_file("llama").name, "Llama-3.1-8B");
  EXPECT_EQ(from_file("llama").kv_heads, 8);
  EXPECT_EQ(from_file("mistral").window, 4096);
  EXPECT_EQ(from_file("mistral").window_layers, 1);
  EXPECT_EQ(from_file("mixtral").window, 0);
  EXPECT_EQ(from_file("qwen3_moe").head_dim, 128);
  EXPECT_TRUE(from_file("qwen3_moe").head_norm);
  EXPECT_FALSE(from_file("gemma2").head_norm);
  EXPECT_EQ(from_file("deepseek_v3").shared_expert_ffn, 2048);
  EXPECT_EQ(from_file("deepseek_v3").mtp_layers, 1);
  EXPECT_EQ(from_file("gemma2").window_layers, 0.5);
  EXPECT_TRUE(from_file("gemma2").tied_embeddings);
  EXPECT_NEAR(from_file("gemma3").window_layers, 5.0 / 6, 1e-9);
  EXPECT_EQ(from_file("gpt_oss").window_layers, 0.5);
  EXPECT_EQ(from_file("falcon").kv_heads, 1);
  EXPECT_TRUE(from_file("falcon").parallel_block);
  EXPECT_TRUE(from_file("gpt_neox").parallel_block);
  EXPECT_FALSE(from_file("gpt2").parallel_block);
  EXPECT_TRUE(from_file("gpt_neox").rotary);
  EXPECT_FALSE(from_file("bert").causal);
  EXPECT_TRUE(from_file("gpt2").learned_positions);
  EXPECT_EQ(from_file("t5").encoder_layers, 24);
  EXPECT_TRUE(from_file("t5").gated_mlp);
  EXPECT_EQ(from_file("llama4").moe_every, 2);
}

std::string error(const std::string& text) {
  const tl::expected<Model, Diagnostics> model = read_hf_config(text, "config.json");
  return model ? "" : model.error().front().message;
}

TEST(HfConfig, UnknownArchitecturesGetABestEffort) {
  EXPECT_EQ(error(R"({"model_type": "brandnew", "hidden_size": 512, "num_hidden_layers": 4,
                      "num_attention_heads": 8, "intermediate_size": 2048, "vocab_size": 999})"),
            "");
  EXPECT_EQ(error(R"({"model_type": "mamba2", "hidden_size": 512})"),
            "`mamba2` is not a transformer; Assay cannot describe it yet");
}

TEST(HfConfig, EveryMissingFieldIsNamed) {
  const tl::expected<Model, Diagnostics> model = read_hf_config("{}", "config.json");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().size(), 5u);
  EXPECT_EQ(model.error()[0].message, "`num_hidden_layers` is missing");
}

// Each with its place and a way out.
TEST(HfConfig, MistakesAreShownInPlace) {
  const std::string shape = R"({"num_hidden_layers": 4,
    "num_attention_heads": 8, "intermediate_size": 64, "vocab_size": 9,
    )";
  struct Mistake {
    std::string text, message;
    int line, column;
  };
  const Mistake mistakes[] = {
      {shape + R"("hidden_size": "abc"})", "`hidden_size` must be a whole number", 3, 20},
      {shape + R"("hidden_size": 0})", "`hidden_size` must be at least 1", 3, 20},
      {shape + R"("hidden_size": 99999999})", "hidden (model width) is out of range: 99999999", 3,
       20},
      {shape + R"("model_type": "mamba"})",
       "`mamba` is not a transformer; Assay cannot describe it yet", 3, 19},
      {shape + "\"hidden_size\": 512\n", "not valid JSON: the file ends inside the `{` of line 1",
       3, 22},
      {"{}", "`num_hidden_layers` is missing", 1, 1},
  };
  for (const Mistake& m : mistakes) {
    const tl::expected<Model, Diagnostics> model = read_hf_config(m.text, "config.json");
    ASSERT_FALSE(model) << m.message;
    const Diagnostic& d = model.error().front();
    EXPECT_EQ(d.message, m.message);
    EXPECT_EQ(d.at.line, m.line) << m.message;
    EXPECT_EQ(d.at.column, m.column) << m.message;
    EXPECT_FALSE(d.help.empty()) << m.message;
    EXPECT_FALSE(d.source_line.empty()) << m.message;
  }
}

TEST(HfConfig, HostileTexts) {
  const std::string base = R"("hidden_size": 512, "num_attention_heads": 8, "vocab_size": 9,
                              "intermediate_size": 64)";
  EXPECT_EQ(error("{" + base + R"(, "num_hidden_layers": -4})"),
            "`num_hidden_layers` must not be negative");
  EXPECT_EQ(error("{" + base + R"(, "num_hidden_layers": 1e30})"),
            "`num_hidden_layers` must be a whole number");
  EXPECT_EQ(error("{" + base + R"(, "num_hidden_layers": "many"})"),
            "`num_hidden_layers` must be a whole number");
  EXPECT_EQ(error("{" + base + R"(, "num_hidden_layers": 1.5})"),
            "`num_hidden_layers` must be a whole number");
  EXPECT_NE(error("{" + base + R"(, "num_hidden_layers": 99999999})"), "");
  EXPECT_EQ(error("[]"), "a JSON object is expected");
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("nul"), std::string(100000, '['),
        std::string("\0\0", 2), std::string("{\"a\":") + std::string(50000, '{'),
        std::string("\xff\xfe{"), std::string(5 << 20, ' ')}) {
    EXPECT_NE(error(text), "");
  }
}

TEST(HfConfig, DescribesAWorkload) {
  Request request;
  request.inputs = {ASSAY_ROOT "/test/data/hf/llama.json", "h100-64"};
  request.sets = {"workload.model.layers=16"};
  const tl::expected<Description, Diagnostics> d = describe(request, catalog());
  ASSERT_TRUE(d) << render(d.error());
  EXPECT_EQ(d->workload_name, "Llama-3.1-8B");
  EXPECT_EQ(d->setting.workload.model.layers, 16);
  EXPECT_EQ(d->setting.workload.model.hidden, 4096);
  EXPECT_EQ(d->origins.at("workload.model.hidden").file, request.inputs[0]);
  EXPECT_TRUE(d->warnings.empty());
  request.inputs[0] = ASSAY_ROOT "/test/data/hf/gemma3.json";
  const tl::expected<Description, Diagnostics> sees = describe(request, catalog());
  ASSERT_TRUE(sees) << render(sees.error());
  ASSERT_EQ(sees->warnings.size(), 1u);
  EXPECT_NE(sees->warnings[0].message.find("vision tower is left out"), std::string::npos);
}

}  // namespace
}  // namespace assay
