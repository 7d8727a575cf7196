// Families whose config.json says more, less or other than a Llama's: read by their published size,
// or refused with the reason.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/text.h"
#include "world/describe_case.h"
#include "world/model_size.h"
#include "world/rules.h"

namespace assay {
namespace {

Model read(const std::string& text) {
  const auto m = read_hf_config(text, "config.json");
  EXPECT_TRUE(m) << text << "\n" << (m ? "" : render(m.error()));
  return m ? *m : Model{};
}

Diagnostic refusal(const std::string& text) {
  const auto m = read_hf_config(text, "config.json");
  EXPECT_FALSE(m) << text;
  return m ? Diagnostic{} : m.error().front();
}

std::vector<std::string> warnings(const std::string& text) {
  std::vector<std::string> out;
  for (const Diagnostic& d : left_out_of_config(text, "config.json")) {
    EXPECT_FALSE(d.help.empty()) << d.message;
    EXPECT_GT(d.at.line, 0) << d.message;
    out.push_back(d.message);
  }
  return out;
}

// `n` times the same item of a list.
std::string times(int n, const std::string& item) {
  std::string out;
  for (int i = 0; i < n; ++i) out += (i > 0 ? "," : "") + item;
  return out;
}

constexpr const char* kErnie =
    R"({"model_type":"ernie4_5_moe","hidden_size":2560,"intermediate_size":12288,
        "num_hidden_layers":28,"num_attention_heads":20,"num_key_value_heads":4,
        "vocab_size":103424,"moe_num_experts":64,"moe_intermediate_size":1536,"moe_k":6,
        "moe_num_shared_experts":2,"moe_layer_start_index":1,"moe_layer_interval":1})";
constexpr const char* kErnieSees =
    R"({"model_type":"ernie4_5_moe_vl","hidden_size":2560,"intermediate_size":12288,
        "num_hidden_layers":28,"num_attention_heads":20,"num_key_value_heads":4,
        "vocab_size":103424,"moe_num_experts":[64,64],"moe_intermediate_size":[1536,512],
        "moe_k":6,"moe_num_shared_experts":2,"moe_layer_start_index":[1,1]})";
constexpr const char* kOpenElm =
    R"({"model_type":"openelm","model_dim":2048,"head_dim":64,"num_transformer_layers":28,
        "num_query_heads":[16,16,16,20,20,20,20,20,20,20,24,24,24,24,24,24,24,24,28,28,28,28,28,28,
                           32,32,32,32],
        "num_kv_heads":[4,4,4,5,5,5,5,5,5,5,6,6,6,6,6,6,6,6,7,7,7,7,7,7,8,8,8,8],
        "ffn_multipliers":[0.5,0.63,0.76,0.89,1.02,1.15,1.28,1.41,1.54,1.67,1.8,1.93,2.06,2.19,
                           2.31,2.44,2.57,2.7,2.83,2.96,3.09,3.22,3.35,3.48,3.61,3.74,3.87,4.0],
        "ffn_dim_divisor":256,"ffn_with_glu":true,"normalize_qk_projections":true,
        "share_input_output_layers":true,"vocab_size":32000,"max_context_length":2048})";

std::string hunyuan() {
  return fmt::format(
      R"({{"model_type":"hunyuan_v1_moe","hidden_size":4096,"intermediate_size":3072,
           "num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,
           "attention_head_dim":128,"vocab_size":128167,"tie_word_embeddings":true,
           "num_experts":64,"moe_topk":[{}],"num_shared_expert":[{}],
           "moe_intermediate_size":[{}],"use_qk_norm":true}})",
      times(32, "8"), times(32, "1"), times(32, "3072"));
}

// Llama-3.3-Nemotron-Super-49B by the blocks of its published config.
std::string nemotron_super() {
  struct Run {
    int blocks;
    bool attention;
    double multiplier;
  };
  const Run runs[] = {{1, true, 2.625},    {5, true, 5.25},  {2, false, 2.625},  {3, true, 5.25},
                      {1, false, 3.28125}, {30, true, 5.25}, {1, false, 1.3125}, {2, false, 2.625},
                      {1, false, 1.3125},  {1, false, 5.25}, {1, false, 1.3125}, {1, false, 2.625},
                      {3, false, 1.3125},  {1, true, 5.25},  {1, false, 1.3125}, {2, false, 1.0},
                      {1, false, 1.3125},  {3, false, 1.0},  {2, false, 1.3125}, {2, false, 0.5},
                      {2, false, 1.0},     {2, false, 0.5},  {1, false, 1.0},    {2, false, 0.5},
                      {9, true, 5.25}};
  std::string blocks;
  for (const Run& r : runs) {
    const std::string attention = r.attention ? R"({"n_heads_in_group":8,"no_op":false})"
                                              : R"({"n_heads_in_group":null,"no_op":true})";
    blocks += (blocks.empty() ? "" : ",") +
              times(r.blocks, fmt::format(R"({{"attention":{},"ffn":{{"ffn_mult":{}}}}})",
                                          attention, r.multiplier));
  }
  return R"({"model_type":"nemotron-nas","hidden_size":8192,"num_hidden_layers":80,
             "num_attention_heads":64,"num_key_value_heads":null,"intermediate_size":null,
             "vocab_size":128256,"tie_word_embeddings":false,"block_configs":[)" +
         blocks + "]}";
}

constexpr const char* kGemma2B =
    R"("num_hidden_layers":26,"num_attention_heads":8,"num_key_value_heads":4,"head_dim":256,
       "intermediate_size":9216,"vocab_size":256000,"sliding_window":4096,"hidden_size":2304)";
constexpr const char* kGemma9B =
    R"("num_hidden_layers":42,"num_attention_heads":16,"num_key_value_heads":8,"head_dim":256,
       "intermediate_size":14336,"vocab_size":256000,"sliding_window":4096,"hidden_size":3584)";

std::string t5gemma(const std::string& encoder) {
  return fmt::format(
      R"({{"model_type":"t5gemma","vocab_size":256000,
           "encoder":{{"model_type":"t5_gemma_module",{}}},
           "decoder":{{"model_type":"t5_gemma_module",{}}}}})",
      encoder, kGemma2B);
}

TEST(HfFamilies, HaveTheirPublishedSize) {
  struct Case {
    const char* what;
    std::string text;
    double total, active;  // billions, as published
  };
  const Case cases[] = {
      {"Qwen-7B",
       R"({"model_type":"qwen","hidden_size":4096,"intermediate_size":22016,"kv_channels":128,
           "num_hidden_layers":32,"num_attention_heads":32,"vocab_size":151936,"seq_length":8192,
           "tie_word_embeddings":false})",
       7.72, 7.72},
      {"Falcon-H1-34B",
       R"({"model_type":"falcon_h1","hidden_size":5120,"intermediate_size":21504,
           "num_hidden_layers":72,"num_attention_heads":20,"num_key_value_heads":4,"head_dim":128,
           "vocab_size":261120,"mamba_n_heads":32,"mamba_d_head":128,"mamba_d_state":256,
           "mamba_n_groups":2,"mamba_d_conv":4,"tie_word_embeddings":false})",
       33.6, 33.6},
      {"Mamba-2.8B",
       R"({"model_type":"mamba","hidden_size":2560,"num_hidden_layers":64,"state_size":16,
           "expand":2,"conv_kernel":4,"time_step_rank":160,"vocab_size":50280})",
       2.77, 2.77},
      {"ERNIE-4.5-21B-A3B", kErnie, 21.8, 3.3},
      {"ERNIE-4.5-VL-28B-A3B, its text", kErnieSees, 21.8, 3.3},
      {"Hunyuan-A13B", hunyuan(), 80.4, 13.0},
      {"OpenELM-1.1B", kOpenElm, 1.08, 1.08},
      {"Nemotron-Super-49B", nemotron_super(), 49.87, 49.87},
      {"T5Gemma-2B-2B", t5gemma(kGemma2B), 5.6, 5.6},
      {"LFM2-1.2B",
       R"({"model_type":"lfm2","hidden_size":2048,"block_ff_dim":12288,"num_hidden_layers":16,
           "block_auto_adjust_ff_dim":true,"block_multiple_of":256,"num_attention_heads":32,
           "num_key_value_heads":8,"vocab_size":65536,"conv_L_cache":3,"tie_embedding":true,
           "layer_types":["conv","conv","full_attention","conv","conv","full_attention","conv",
           "conv","full_attention","conv","full_attention","conv","full_attention","conv",
           "full_attention","conv"]})",
       1.17, 1.17},
  };
  for (const Case& c : cases) {
    const Model m = read(c.text);
    EXPECT_NEAR(parameters(m) / 1e9 / c.total, 1, 0.01) << c.what;
    EXPECT_NEAR(active_parameters(m) / 1e9 / c.active, 1, 0.03) << c.what;
  }
}

TEST(HfFamilies, MeansKeepWhatDividesEveryLayer) {
  const Model elm = read(kOpenElm);
  EXPECT_EQ(elm.heads, 24);
  EXPECT_EQ(elm.kv_heads, 6);
  EXPECT_EQ(elm.ffn % 256, 0);
  EXPECT_TRUE(elm.tied_embeddings);
  EXPECT_TRUE(elm.head_norm);
  const Model nas = read(nemotron_super());
  EXPECT_EQ(nas.heads, 40);
  EXPECT_EQ(nas.kv_heads, 5);
  EXPECT_EQ(nas.head_dim, 128);
  EXPECT_EQ(nas.ffn % 256, 0);
  EXPECT_TRUE(nas.gated_mlp);  // `nemotron` alone has none
  const Model deci = read(
      R"({"model_type":"deci","hidden_size":4096,"intermediate_size":14336,"vocab_size":32000,
          "num_hidden_layers":4,"num_attention_heads":32,
          "num_key_value_heads_per_layer":[4,4,3,1]})");
  EXPECT_EQ(deci.kv_heads, 2);  // 3 does not divide 32
  EXPECT_EQ(read(hunyuan()).experts_per_token, 8);
  EXPECT_TRUE(warnings(hunyuan()).empty());
  EXPECT_EQ(warnings(kOpenElm).size(), 3u);
  EXPECT_EQ(warnings(nemotron_super()),
            std::vector<std::string>{"its layers differ (`block_configs`): planned with their "
                                     "mean, 40 heads and an MLP of 20480"});
}

TEST(HfFamilies, TwoHalvesHaveOneShape) {
  const Model m = read(t5gemma(kGemma2B));
  EXPECT_EQ(m.encoder_layers, 26);
  EXPECT_EQ(m.layers, 26);
  EXPECT_EQ(m.hidden, 2304);
  EXPECT_TRUE(m.rotary);
  EXPECT_TRUE(warnings(t5gemma(kGemma2B)).empty());
  // The 9B-2B: 42 layers of 193.9 M, 26 of 63.7 M and the cross-attention's 14.2 M, two tables.
  const Model unequal = read(t5gemma(kGemma9B));
  EXPECT_EQ(unequal.encoder_layers, 42);
  EXPECT_EQ(unequal.layers, 26);
  EXPECT_NEAR(parameters(unequal) / 12.23e9, 1, 0.02);
  const double flops = 6 * (10.72e9 + 0.59e9);  // beside attention's
  EXPECT_NEAR(flops_per_token(unequal, 1, Task::kPretrain) / flops, 1, 0.03);
  EXPECT_EQ(warnings(t5gemma(kGemma9B)),
            std::vector<std::string>{"its encoder and its decoder differ: planned with their mean, "
                                     "3072 wide, 12 heads and an MLP of 12992"});
  std::string odd = kGemma9B;
  odd.replace(odd.find("\"head_dim\":256"), 14, "\"head_dim\":128");
  const Diagnostic d = refusal(t5gemma(odd));
  EXPECT_NE(d.message.find("heads are of another kind"), std::string::npos);
  EXPECT_EQ(d.at.line, 2);
}

// Three ways to say which layers attend, of which a file may have one.
TEST(HfFamilies, LayersListedByNumberAreCounted) {
  const std::string lfm2 =
      R"({"model_type":"lfm2","hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":16,
          "num_attention_heads":32,"num_key_value_heads":8,"vocab_size":65536,"conv_L_cache":3,
          "tie_embedding":true,"full_attn_idxs":[2,5,8,10,12,14]})";
  EXPECT_EQ(read(lfm2).mixer.layers, 10);
  EXPECT_EQ(attention_layers(read(lfm2)), 6);
  EXPECT_NEAR(parameters(read(lfm2)) / 1.17e9, 1, 0.01);
  const auto zamba2 = [](const std::string& layers) {
    return R"({"model_type":"zamba2","hidden_size":2048,"intermediate_size":8192,
               "num_attention_heads":32,"n_mamba_heads":64,"mamba_d_state":64,"mamba_ngroups":1,
               "mamba_expand":2,"mamba_d_conv":4,"num_mem_blocks":1,"adapter_rank":128,
               "use_shared_attention_adapter":true,"num_hidden_layers":38,"vocab_size":32000,)" +
           layers + "}";
  };
  const Model numbered = read(zamba2(R"("hybrid_layer_ids":[5,11,17,23,29,35])"));
  const Model listed = read(zamba2(R"("layers_block_type":[)" + times(32, R"("mamba")") + "," +
                                   times(6, R"("hybrid")") + "]"));
  EXPECT_EQ(numbered.mixer.layers, 38);
  EXPECT_EQ(attention_layers(numbered), 6);
  EXPECT_EQ(numbered.mlp_layers, 6);
  EXPECT_DOUBLE_EQ(parameters(numbered), parameters(listed));
}

// Qwen2 windows the layers from `max_window_layers` on: where that is all of them, none.
TEST(HfFamilies, AWindowOfNoLayerIsNone) {
  const auto qwen = [](int full) {
    return fmt::format(
        R"({{"model_type":"qwen2","hidden_size":1024,"num_hidden_layers":24,"vocab_size":1000,
             "num_attention_heads":16,"num_key_value_heads":4,"intermediate_size":4096,
             "max_position_embeddings":131072,"sliding_window":4096,"use_sliding_window":true,
             "max_window_layers":{}}})",
        full);
  };
  EXPECT_EQ(read(qwen(24)).window, 0);
  EXPECT_EQ(read(qwen(28)).window, 0);
  EXPECT_EQ(read(qwen(18)).window, 4096);
  EXPECT_DOUBLE_EQ(read(qwen(18)).window_layers, 0.25);
}

// A name that begins as another is another: falcon_h1 is no falcon.
TEST(HfFamilies, TypesAreWholeNames) {
  const auto of_type = [](const std::string& type, const std::string& more = "") {
    return fmt::format(R"({{"model_type":"{}","hidden_size":1024,"num_hidden_layers":4,
                            "num_attention_heads":16,"num_key_value_heads":4,
                            "intermediate_size":4096,"vocab_size":1000{}}})",
                       type, more);
  };
  const std::string mixer =
      R"(,"mamba_n_heads":32,"mamba_d_head":64,"mamba_d_state":128,"num_layers":4)";
  const Model h1 = read(of_type("falcon_h1", mixer));
  EXPECT_EQ(h1.kv_heads, 4);
  EXPECT_TRUE(h1.gated_mlp);
  EXPECT_FALSE(h1.tied_embeddings);
  EXPECT_FALSE(h1.parallel_block);
  EXPECT_EQ(read(of_type("falcon")).kv_heads, 0);
  EXPECT_FALSE(read(of_type("nemotron")).gated_mlp);
  EXPECT_TRUE(read(of_type("phi3")).gated_mlp);
  EXPECT_FALSE(read(of_type("phi")).gated_mlp);
  EXPECT_FALSE(
      read(of_type("mamba2", R"(,"state_size":128,"head_dim":64,"num_heads":32)")).tied_embeddings);
  // The text half of a model that sees is its family; a name that nobody knows is none.
  EXPECT_TRUE(read(of_type("gemma3_text")).tied_embeddings);
  EXPECT_TRUE(warnings(of_type("qwen3_vl_moe_text")).empty());
  for (const char* unknown : {"gemma5", "llamafied", "t5x", "gpt2_new", "mistralx", "bertish"}) {
    const std::vector<std::string> told = warnings(of_type(unknown));
    ASSERT_EQ(told.size(), 1u) << unknown;
    EXPECT_EQ(told[0], fmt::format("model_type `{}` is not known; read as a decoder of the Llama "
                                   "kind by its keys",
                                   unknown));
    EXPECT_TRUE(read(of_type(unknown)).gated_mlp);
  }
}

TEST(HfFamilies, WhatCannotBeDescribedIsRefusedWithTheReason) {
  for (const char* type : {"longcat_flash_ngram", "jetmoe", "longformer", "big_bird", "xlnet",
                           "reformer", "funnel", "mobilebert", "fnet"}) {
    const Diagnostic d = refusal(fmt::format(
        R"({{"hidden_size":1024,"vocab_size":1000,
            "model_type":"{}"}})",
        type));
    EXPECT_TRUE(d.message.starts_with(fmt::format("`{}` cannot be described: ", type)));
    EXPECT_TRUE(contains(d.help, "name a model"));
    EXPECT_EQ(d.at.line, 2);
  }
  EXPECT_TRUE(contains(refusal(R"({"d_model":1536,"n_layer":4,"vocab_size":9,"ssm_cfg":{},
                                   "attn_layer_idx":[1]})")
                           .message,
                       "cannot describe yet (`attn_layer_idx`)"));
  std::string linear = nemotron_super();
  linear.replace(linear.find(R"("no_op":true)"), 12, R"("replace_with_linear":true)");
  EXPECT_TRUE(contains(refusal(linear).message, "one matrix"));
}

TEST(HfFamilies, WhatIsMissingOrAtOddsIsToldInPlace) {
  const std::string shape =
      R"("hidden_size":1024,"num_hidden_layers":4,"num_attention_heads":16,
         "intermediate_size":4096,"vocab_size":1000)";
  const Diagnostic kimi = refusal(R"({"model_type":"kimi_linear",)" + shape + "}");
  EXPECT_EQ(kimi.message,
            "`kimi_linear` has recurrent layers, and `linear_attn_config` is missing");
  EXPECT_EQ(
      refusal(R"({"model_type":"kimi_linear","linear_attn_config":{"num_heads":32},)" + shape + "}")
          .message,
      "`linear_attn_config.head_dim` is missing");
  const Diagnostic kinds =
      refusal(R"({"model_type":"llama",)" + shape + ",\n\"layer_types\":[\"full_attention\"]}");
  EXPECT_EQ(kinds.message, "`layer_types` has 1 layers of 4");
  EXPECT_EQ(kinds.at.line, 3);
  // Layers that predict further tokens may be listed behind the others.
  read(R"({"model_type":"llama","num_nextn_predict_layers":1,"layer_types":[)" +
       times(5, R"("full_attention")") + "]," + shape + "}");
  // Where the class says how wide a head is, nothing is missing.
  EXPECT_EQ(read(R"({"model_type":"minimax","layer_types":["linear_attention","full_attention",
                     "linear_attention","full_attention"],)" +
                 shape + "}")
                .mixer.head_dim,
            64);
  EXPECT_EQ(warnings(R"({"model_type":"llama","quantization_config":{"bits":8},)" + shape + "}"),
            std::vector<std::string>{"its quantization_config is left out: the plan says in which "
                                     "format weights are trained"});
}

// Of two keys that contradict each other the later one is shown, by its own name.
TEST(HfFamilies, ContradictionsAreShownAtTheirKeys) {
  const std::string base = R"({"model_type":"llama","num_hidden_layers":4,
"intermediate_size":64,"vocab_size":9,
)";
  const Diagnostic heads = refusal(base + R"("hidden_size":1000,
"num_attention_heads":7})");
  EXPECT_EQ(heads.message, "model: 7 heads do not divide the width of 1000");
  EXPECT_EQ(heads.at.line, 4);
  EXPECT_EQ(heads.at.column, 23);
  const Diagnostic groups = refusal(base + R"("num_key_value_heads":16,
"hidden_size":1024,"num_attention_heads":24,"head_dim":32})");
  EXPECT_EQ(groups.at.line, 4);
  EXPECT_FALSE(groups.help.empty());
  const Diagnostic experts = refusal(base + R"("hidden_size":1024,"num_attention_heads":8,
"num_experts":4,
"num_experts_per_tok":8})");
  EXPECT_EQ(experts.message, "model: a token cannot visit 8 of 4 experts");
  EXPECT_EQ(experts.at.line, 5);
}

TEST(HfFamilies, RangesAreToldByTheKeyThatLeavesThem) {
  const auto with = [](const char* layers) {
    return refusal(fmt::format(R"({{"model_type":"llama","hidden_size":64,"vocab_size":9,
      "num_attention_heads":8,"intermediate_size":64,"num_hidden_layers":{}}})",
                               layers));
  };
  for (const char* layers : {"1e+30", "1e30", "99999999999"}) {
    const Diagnostic d = with(layers);
    EXPECT_TRUE(d.message.starts_with("`num_hidden_layers` is out of range: ")) << d.message;
    EXPECT_EQ(d.help, "write at most 100000");
    EXPECT_EQ(d.at.line, 2);
  }
  EXPECT_EQ(with("100001").message, "`num_hidden_layers` is out of range: 100001");
  EXPECT_EQ(with("100001").help, "write 0 to 100000");
}

}  // namespace
}  // namespace assay
