#include <gtest/gtest.h>

#include "base/file.h"
#include "world/describe.h"
#include "world/model_size.h"
#include "world/rules.h"

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

// Shapes that lie deeper, in two halves, or are left to the class.
TEST(HfConfig, FamiliesThatNameTheirShapesTheirOwnWay) {
  struct Case {
    const char* what;
    std::string text;
    double total;  // billions, as published
  };
  const Case cases[] = {
      {"DBRX",
       R"({"model_type":"dbrx","d_model":6144,"n_heads":48,"n_layers":40,"vocab_size":100352,
          "max_seq_len":32768,"attn_config":{"kv_n_heads":8,"clip_qkv":8},
          "ffn_config":{"ffn_hidden_size":10752,"moe_num_experts":16,"moe_top_k":4}})",
       131.6},
      {"Whisper large",
       R"({"model_type":"whisper","d_model":1280,"encoder_layers":32,"decoder_layers":32,
          "encoder_attention_heads":20,"decoder_attention_heads":20,"encoder_ffn_dim":5120,
          "decoder_ffn_dim":5120,"vocab_size":51866,"max_source_positions":1500,
          "max_target_positions":448,"num_hidden_layers":32,"num_mel_bins":128})",
       1.54},
      {"MiniCPM3",
       R"({"model_type":"minicpm3","hidden_size":2560,"intermediate_size":6400,
          "num_attention_heads":40,"num_hidden_layers":62,"num_key_value_heads":40,
          "vocab_size":73448,"q_lora_rank":768,"kv_lora_rank":256,"qk_nope_head_dim":64,
          "qk_rope_head_dim":32,"max_position_embeddings":32768})",
       4.07},
      {"OPT-350M",
       R"({"model_type":"opt","hidden_size":1024,"ffn_dim":4096,"num_attention_heads":16,
          "num_hidden_layers":24,"vocab_size":50272,"word_embed_proj_dim":512,
          "max_position_embeddings":2048})",
       0.331},
      {"mBART",
       R"({"model_type":"mbart","d_model":1024,"encoder_layers":12,"decoder_layers":12,
          "encoder_attention_heads":16,"decoder_attention_heads":16,"encoder_ffn_dim":4096,
          "decoder_ffn_dim":4096,"vocab_size":250027,"max_position_embeddings":1024})",
       0.611}};
  for (const Case& c : cases) {
    const auto m = read_hf_config(c.text, "c.json");
    ASSERT_TRUE(m) << c.what << "\n" << render(m.error());
    EXPECT_NEAR(parameters(*m) / 1e9 / c.total, 1, 0.01) << c.what;
  }
  const auto dbrx = read_hf_config(cases[0].text, "c.json");
  EXPECT_EQ(dbrx->kv_heads, 8);
  EXPECT_EQ(dbrx->experts_per_token, 4);
  EXPECT_EQ(read_hf_config(cases[1].text, "c.json")->encoder_layers, 32);
  EXPECT_EQ(read_hf_config(cases[2].text, "c.json")->v_head_dim, 64);
}

// What is counted otherwise than it runs is said.
TEST(HfConfig, WhatIsNotDescribedIsWarnedOf) {
  const std::string shape =
      R"({"model_type":"llama","hidden_size":1024,"num_hidden_layers":4,"num_attention_heads":16,
         "intermediate_size":4096,"vocab_size":1000)";
  const auto warning = [&](const std::string& more) {
    const Diagnostics all = left_out_of_config(shape + more + "}", "c.json");
    EXPECT_LE(all.size(), 1u);
    return all.empty() ? "" : all[0].message;
  };
  EXPECT_EQ(warning(""), "");
  EXPECT_EQ(warning(R"(,"index_topk":2048,"index_n_heads":64)"),
            "its sparse attention is counted as dense: every token attends to all before");
  EXPECT_NE(warning(R"(,"vision_config":{},"mm_vision_tower":"x")"), "");
}

// Families name their mixers and count their layers each in its own way.
struct MixerCase {
  const char* what;
  std::string text;
  MixerKind kind;
  int64_t layers, mixers, attention, mlps, heads, state;
};

const std::vector<MixerCase>& mixer_cases() {
  static const std::string shape =
      R"("hidden_size":2048,"num_hidden_layers":8,"num_attention_heads":16,
      "num_key_value_heads":2,"vocab_size":1000,"intermediate_size":4096)";
  static const std::vector<MixerCase> cases = {
      {"Nemotron-H",
       R"({"model_type":"nemotron_h","hybrid_override_pattern":"M-M*M-M-","mamba_num_heads":64,
          "mamba_head_dim":64,"ssm_state_size":128,"n_groups":8,"conv_kernel":4,)" +
           shape + "}",
       MixerKind::kMamba2, 8, 4, 1, 3, 64, 128},
      {"Nemotron 3 by a list, without a number of layers",
       R"({"model_type":"nemotron_h","layers_block_type":["mamba","moe","attention","moe"],
          "mamba_num_heads":64,"mamba_head_dim":64,"ssm_state_size":128,"n_groups":8,
          "n_routed_experts":16,"num_experts_per_tok":2,"moe_intermediate_size":512,
          "moe_latent_size":256,"hidden_size":2048,"num_attention_heads":16,"vocab_size":1000})",
       MixerKind::kMamba2, 4, 1, 1, 2, 64, 128},
      {"Qwen3-Next",
       R"({"model_type":"qwen3_next","full_attention_interval":4,"linear_num_value_heads":32,
          "linear_value_head_dim":128,"linear_num_key_heads":16,"linear_key_head_dim":128,
          "linear_conv_kernel_dim":4,"head_dim":256,)" +
           shape + "}",
       MixerKind::kGatedDelta, 8, 6, 2, 8, 32, 128},
      {"Granite 4, head size left to the class",
       R"({"model_type":"granitemoehybrid","layer_types":["mamba","mamba","mamba","attention"],
          "mamba_n_heads":64,"mamba_d_head":"auto","mamba_expand":2,"mamba_d_state":128,
          "num_local_experts":0,"shared_intermediate_size":8192,"num_hidden_layers":4,
          "hidden_size":2048,"num_attention_heads":16,"vocab_size":1000,"intermediate_size":64})",
       MixerKind::kMamba2, 4, 3, 1, 4, 64, 128},
      {"Kimi Linear",
       R"({"model_type":"kimi_linear","linear_attn_config":{"kda_layers":[1,2,3,5,6,7],
          "full_attn_layers":[4,8],"num_heads":32,"head_dim":128,"short_conv_kernel_size":4},)" +
           shape + "}",
       MixerKind::kKda, 8, 6, 2, 8, 32, 128},
      {"Jamba",
       R"({"model_type":"jamba","attn_layer_period":8,"mamba_d_state":16,"mamba_d_conv":4,
          "mamba_expand":2,"mamba_dt_rank":128,)" +
           shape + "}",
       MixerKind::kMamba, 8, 7, 1, 8, 4096, 16},
      {"Mamba-2 alone",
       R"({"model_type":"mamba2","hidden_size":2560,"num_hidden_layers":64,"num_heads":80,
          "head_dim":64,"state_size":128,"n_groups":1,"conv_kernel":4,"vocab_size":50288})",
       MixerKind::kMamba2, 64, 64, 0, 64, 80, 128},
      {"Falcon-H1: both in every layer",
       R"({"model_type":"falcon_h1","mamba_n_heads":32,"mamba_d_head":64,"mamba_d_state":256,)" +
           shape + "}",
       MixerKind::kMamba2, 8, 8, 8, 8, 32, 256},
      {"MiniMax-01",
       R"({"model_type":"minimax_text_01","attn_type_list":[0,0,0,1,0,0,0,1],"head_dim":128,)" +
           shape + "}",
       MixerKind::kLightning, 8, 6, 2, 8, 16, 128},
      {"LFM2",
       R"({"model_type":"lfm2","conv_L_cache":3,"layer_types":["conv","conv","full_attention",
          "conv","conv","full_attention","conv","full_attention"],)" +
           shape + "}",
       MixerKind::kConvolution, 8, 5, 3, 8, 1, 0},
  };
  return cases;
}

TEST(HfConfig, RecurrentMixers) {
  const std::vector<MixerCase>& cases = mixer_cases();
  for (const MixerCase& c : cases) {
    const auto m = read_hf_config(c.text, "c.json");
    ASSERT_TRUE(m) << c.what << "\n" << render(m.error());
    EXPECT_EQ(m->mixer.kind, c.kind) << c.what;
    EXPECT_EQ(m->layers, c.layers) << c.what;
    EXPECT_EQ(m->mixer.layers, c.mixers) << c.what;
    EXPECT_EQ(attention_layers(*m), c.attention) << c.what;
    EXPECT_EQ(mlp_layers(*m), c.mlps) << c.what;
    EXPECT_EQ(m->mixer.heads, c.heads) << c.what;
    EXPECT_EQ(m->mixer.state, c.state) << c.what;
  }
  std::string longer = cases[0].text;
  longer.replace(longer.find("M-M*M-M-"), 8, "M-M*");
  EXPECT_NE(render(read_hf_config(longer, "c.json").error()).find("has 4 layers of 8"),
            std::string::npos);
  const auto granite = read_hf_config(cases[3].text, "c.json");
  EXPECT_EQ(granite->mixer.head_dim, 64);  // 2 x 2048 / 64
  EXPECT_EQ(granite->ffn, 8192);
  EXPECT_EQ(read_hf_config(cases[1].text, "c.json")->expert_hidden, 256);
  EXPECT_TRUE(read_hf_config(cases[2].text, "c.json")->gated_attention);
}

// Layers without attention would be predicted as if they had it, where their shapes are not told.
TEST(HfConfig, UnknownMixersAreRefused) {
  const std::string shape =
      R"("hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":4,
         "num_attention_heads":32,"vocab_size":65536)";
  for (const char* more :
       {R"("attn_layer_period":8)", R"("mamba_d_conv":4)", R"("hybrid_override_pattern":"M-M*")",
        R"("layer_types":["linear_attention","full_attention"])", R"("layer_types":["conv"])",
        R"("lru_width":4096)"}) {
    const auto m = read_hf_config("{\"model_type\":\"x\"," + shape + "," + more + "}", "c.json");
    ASSERT_FALSE(m) << more;
    EXPECT_NE(render(m.error()).find("cannot describe yet"), std::string::npos) << more;
  }
  EXPECT_TRUE(read_hf_config("{" + shape + R"(,"layer_types":["full_attention","full_attention",
      "full_attention","full_attention"]})",
                             "c.json"));
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
  EXPECT_EQ(from_file("deepseek_v3").groups_per_token, 4);
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
  EXPECT_EQ(error(R"({"model_type": "swin", "hidden_size": 768, "num_hidden_layers": 12,
                      "num_attention_heads": 12, "intermediate_size": 3072, "patch_size": 16})"),
            "`swin` reads images or sound, not tokens (`patch_size`, and no vocabulary)");
  EXPECT_EQ(error(R"({"model_type": "wav2vec2", "hidden_size": 768, "num_hidden_layers": 12,
                      "num_attention_heads": 12, "vocab_size": 32, "conv_dim": [512, 512]})"),
            "`wav2vec2` reads images or sound, not tokens (`conv_dim`)");
  EXPECT_EQ(error(R"({"model_type": "rwkv8", "hidden_size": 512, "vocab_size": 9})"),
            "`rwkv8` has layers that Assay cannot describe yet (`model_type`)");
}

// A sequence of patches and what stands beside them; words are classes.
TEST(HfConfig, EncodersOfImages) {
  const auto vit = read_hf_config(
      R"({"model_type": "vit", "hidden_size": 1024, "num_hidden_layers": 24,
          "num_attention_heads": 16, "intermediate_size": 4096, "image_size": 224,
          "patch_size": 16})",
      "config.json");
  ASSERT_TRUE(vit);
  const Model& named = *find_model(catalog(), "vit-l-16");
  EXPECT_EQ(parameters(*vit), parameters(named));
  EXPECT_EQ(vit->max_positions, named.max_positions);
  EXPECT_FALSE(vit->causal);
  const auto dino = read_hf_config(
      R"({"model_type": "dinov2", "hidden_size": 1536, "num_hidden_layers": 40,
          "num_attention_heads": 24, "mlp_ratio": 4, "use_swiglu_ffn": true, "image_size": 518,
          "patch_size": 14})",
      "config.json");
  ASSERT_TRUE(dino);
  EXPECT_EQ(dino->max_positions, 1370);
  EXPECT_EQ(dino->ffn, 4096);
  EXPECT_NEAR(parameters(*dino) / 1.137e9, 1, 0.01);  // published: 1,136 M
  EXPECT_EQ(error(R"({"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12,
                      "num_attention_heads": 12, "image_size": 8, "patch_size": 16})"),
            "patches of 16 do not cut an image of 8");
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
      {shape + R"("hidden_size": 99999999})", "`hidden_size` is out of range: 99999999", 3, 20},
      {shape + R"("model_type": "zamba2"})",
       "`zamba2` has recurrent layers, and `mamba_d_state` is missing", 3, 19},
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
            "`num_hidden_layers` is out of range: 1e+30");
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
