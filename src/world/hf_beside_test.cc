// Families whose layers share weights, carry a state, or have more than attention and MLP: by the
// shapes of published configs, each held to its published size.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/text.h"
#include "world/describe_case.h"
#include "world/model_size.h"
#include "world/rules.h"

namespace assay {
namespace {

Model read_shape(const std::string& text) {
  const auto m = read_hf_config(text, "config.json");
  EXPECT_TRUE(m) << text << "\n" << (m ? "" : render(m.error()));
  return m ? *m : Model{};
}

std::vector<std::string> told(const std::string& text) {
  std::vector<std::string> out;
  for (const Diagnostic& d : left_out_of_config(text, "config.json")) out.push_back(d.message);
  return out;
}

std::string repeated(int n, const std::string& item) {
  std::string out;
  for (int i = 0; i < n; ++i) out += (i > 0 ? "," : "") + item;
  return out;
}

std::string albert(int hidden, int heads, int ffn, int layers) {
  return fmt::format(
      R"({{"model_type":"albert","embedding_size":128,"hidden_size":{},"num_attention_heads":{},
           "intermediate_size":{},"num_hidden_layers":{},"num_hidden_groups":1,
           "inner_group_num":1,"max_position_embeddings":512,"vocab_size":30000}})",
      hidden, heads, ffn, layers);
}

// NLLB's 54B, and a Switch of `experts`.
constexpr const char* kNllbMoe =
    R"({"model_type":"nllb-moe","d_model":2048,"encoder_layers":24,"decoder_layers":24,
        "encoder_attention_heads":16,"decoder_attention_heads":16,"encoder_ffn_dim":8192,
        "decoder_ffn_dim":8192,"num_experts":128,"encoder_sparse_step":4,"decoder_sparse_step":4,
        "vocab_size":256206,"max_position_embeddings":1024,"num_hidden_layers":24})";
std::string switch_base(int experts) {
  return fmt::format(
      R"({{"model_type":"switch_transformers","d_model":768,"d_ff":3072,"d_kv":64,"num_heads":12,
           "num_layers":12,"num_decoder_layers":12,"num_experts":{},"encoder_sparse_step":2,
           "decoder_sparse_step":2,"feed_forward_proj":"relu","vocab_size":32128}})",
      experts);
}

constexpr const char* kLongcat =
    R"({"model_type":"longcat_flash","hidden_size":6144,"num_layers":28,"ffn_hidden_size":12288,
        "expert_ffn_hidden_size":2048,"n_routed_experts":512,"zero_expert_num":256,"moe_topk":12,
        "num_attention_heads":64,"q_lora_rank":1536,"kv_lora_rank":512,"qk_nope_head_dim":128,
        "qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":131072,
        "tie_word_embeddings":false})";

std::string recurrent_gemma(int hidden, int heads, int layers, int width) {
  return fmt::format(
      R"({{"model_type":"recurrent_gemma","hidden_size":{0},"lru_width":{0},"intermediate_size":{1},
           "num_attention_heads":{2},"num_key_value_heads":1,"head_dim":256,"conv1d_width":4,
           "num_hidden_layers":{3},"attention_window_size":2048,"vocab_size":256000,
           "block_types":["recurrent","recurrent","attention"]}})",
      hidden, width, heads, layers);
}

constexpr const char* kRwkv4 =
    R"({"model_type":"rwkv","hidden_size":5120,"attention_hidden_size":5120,
        "intermediate_size":20480,"num_hidden_layers":40,"context_length":1024,
        "vocab_size":50277})";
constexpr const char* kRwkv5 =
    R"({"model_type":"rwkv5","hidden_size":4096,"attention_hidden_size":4096,"head_size":64,
        "num_attention_heads":64,"intermediate_size":null,"num_hidden_layers":32,
        "vocab_size":65536})";
constexpr const char* kRwkv6 =
    R"({"model_type":"rwkv6","hidden_size":2048,"attention_hidden_size":2048,"head_size":64,
        "num_attention_heads":64,"intermediate_size":null,"num_hidden_layers":24,
        "vocab_size":65536})";
constexpr const char* kRwkv7 =
    R"({"model_type":"rwkv7","hidden_size":2560,"hidden_ratio":4.0,"head_dim":64,"num_heads":40,
        "decay_low_rank_dim":96,"a_low_rank_dim":96,"v_low_rank_dim":64,"gate_low_rank_dim":320,
        "num_hidden_layers":32,"vocab_size":65536,"tie_word_embeddings":false})";
constexpr const char* kXlstm =
    R"({"model_type":"xlstm","embedding_dim":4096,"num_blocks":32,"num_heads":8,
        "qk_dim_factor":0.5,"v_dim_factor":1.0,"ffn_proj_factor":2.667,"vocab_size":50304})";

std::string zamba() {
  const std::string period = R"("mamba","mamba","mamba","mamba","hybrid","mamba")";
  return R"({"model_type":"zamba","hidden_size":3712,"intermediate_size":14848,
             "num_attention_heads":16,"num_key_value_heads":16,"n_mamba_heads":2,"mamba_expand":2,
             "mamba_d_state":16,"mamba_d_conv":4,"mamba_dt_rank":232,"num_hidden_layers":76,
             "vocab_size":32000,"attn_layer_period":6,"attn_layer_offset":4,
             "layers_block_type":["mamba","mamba","hybrid",)" +
         repeated(12, period) + R"(,"mamba"]})";
}

std::string zamba2(int hidden, int layers, int hybrids, int heads, int mixer_heads, int sets,
                   bool adapted) {
  return fmt::format(
      R"({{"model_type":"zamba2","hidden_size":{0},"intermediate_size":{1},"kv_channels":{2},
           "num_attention_heads":{3},"n_mamba_heads":{4},"mamba_headdim":64,"mamba_d_state":{9},
           "mamba_ngroups":{10},"mamba_expand":2,"mamba_d_conv":4,"num_mem_blocks":{5},
           "adapter_rank":128,"use_shared_attention_adapter":{6},"num_hidden_layers":{7},
           "vocab_size":32000,"layers_block_type":[{8}]}})",
      hidden, 4 * hidden, hidden / heads, heads, mixer_heads, sets, adapted, layers,
      repeated(layers - hybrids, R"("mamba")") + "," + repeated(hybrids, R"("hybrid")"),
      adapted ? 128 : 64, hidden > 3000 ? 2 : 1);
}

std::string gemma3n(int layers, int width, int taken) {
  return fmt::format(
      R"({{"model_type":"gemma3n","text_config":{{"model_type":"gemma3n_text","hidden_size":2048,
           "intermediate_size":[{0}],"num_hidden_layers":{1},"num_attention_heads":8,
           "num_key_value_heads":2,"head_dim":256,"hidden_size_per_layer_input":256,
           "altup_num_inputs":4,"laurel_rank":64,"num_kv_shared_layers":{2},"sliding_window":512,
           "layer_types":[{3}],"vocab_size":262400,"vocab_size_per_layer_input":262144}}}})",
      repeated(layers, std::to_string(width)), layers, taken,
      repeated(layers / 5, R"("sliding_attention","sliding_attention","sliding_attention",)"
                           R"("sliding_attention","full_attention")"));
}

std::string gemma4(int hidden, int layers, int kv, int taken, bool wide) {
  return fmt::format(
      R"({{"model_type":"gemma4","text_config":{{"model_type":"gemma4_text","hidden_size":{},
           "hidden_size_per_layer_input":256,"intermediate_size":{},"num_hidden_layers":{},
           "num_attention_heads":8,"num_key_value_heads":{},"head_dim":256,"global_head_dim":512,
           "num_kv_shared_layers":{},"use_double_wide_mlp":{},"sliding_window":512,
           "vocab_size":262144}}}})",
      hidden, 4 * hidden, layers, kv, taken, wide);
}

std::string t5gemma2(int hidden, int width, int layers, int heads, int kv) {
  const std::string half = fmt::format(
      R"("hidden_size":{},"intermediate_size":{},"num_hidden_layers":{},"num_attention_heads":{},
         "num_key_value_heads":{},"head_dim":256,"vocab_size":262144,"sliding_window":512)",
      hidden, width, layers, heads, kv);
  return fmt::format(
      R"({{"model_type":"t5gemma2","encoder":{{"model_type":"t5gemma2_encoder",
           "text_config":{{{0}}}}},"decoder":{{"model_type":"t5gemma2_decoder",{0}}}}})",
      half);
}

constexpr const char* kMambaSsm =
    R"({"d_model":2560,"n_layer":64,"vocab_size":50277,"ssm_cfg":{},"rms_norm":true})";
constexpr const char* kMamba2Ssm =
    R"({"d_model":2560,"d_intermediate":0,"n_layer":64,"vocab_size":50277,
        "ssm_cfg":{"layer":"Mamba2"},"attn_layer_idx":[],"tie_embeddings":true})";

struct Case {
  const char* what;
  std::string text;
  double total, active;  // billions, as published or counted from the published weights
};

std::vector<Case> cases() {
  return {
      // Without the pooler of the published 11.7 and 222.6 M, one matrix of the model's width.
      {"ALBERT base", albert(768, 12, 3072, 12), 0.01168 - 0.00059, 0.01109},
      {"ALBERT xxlarge", albert(4096, 64, 16384, 12), 0.2226 - 0.0168, 0.2058},
      {"Switch base 8", switch_base(8), 0.619, 0.223},
      {"Switch base 128", switch_base(128), 7.42, 0.223},
      {"NLLB-MoE 54B", kNllbMoe, 54.5, 3.75},
      {"LongCat-Flash", kLongcat, 560, 27},
      {"RecurrentGemma 2B", recurrent_gemma(2560, 10, 26, 15360), 2.68, 2.68},
      {"RecurrentGemma 9B", recurrent_gemma(4096, 16, 38, 24576), 8.58, 8.58},
      {"RWKV-4 14B", kRwkv4, 14.15, 14.15},
      {"RWKV-5 7B", kRwkv5, 7.52, 7.52},
      {"RWKV-6 1.6B", kRwkv6, 1.60, 1.60},
      {"RWKV-7 2.9B", kRwkv7, 2.95, 2.95},
      {"xLSTM 7B", kXlstm, 6.87, 6.87},
      {"Zamba 7B", zamba(), 7.23, 7.23},
      {"Zamba2 2.7B", zamba2(2560, 54, 9, 32, 80, 2, false), 2.66, 2.66},
      {"Zamba2 7B", zamba2(3584, 81, 13, 32, 112, 2, false), 7.36, 7.36},
      {"Zamba2 1.2B", zamba2(2048, 38, 6, 32, 64, 1, true), 1.22, 1.22},
      // The language model of 7.85 and 5.44 B: 0.68 hear, 0.30 see.
      {"Gemma 3n E4B", gemma3n(35, 16384, 15), 6.87, 4.52},
      {"Gemma 3n E2B", gemma3n(30, 8192, 10), 4.46, 2.45},
      // 5.1 and 8 B: 0.3 hear, 0.15 see.
      {"Gemma 4 E2B", gemma4(1536, 35, 1, 20, true), 4.65, 2.3},
      {"Gemma 4 E4B", gemma4(2560, 42, 2, 18, false), 7.5, 4.7},
      {"T5Gemma 2 270M", t5gemma2(640, 2048, 18, 4, 1), 0.370, 0.370},
      {"T5Gemma 2 1B", t5gemma2(1152, 6912, 26, 4, 1), 1.70, 1.70},
      {"ESM-2 650M",
       R"({"model_type":"esm","hidden_size":1280,"intermediate_size":5120,"num_hidden_layers":33,
           "num_attention_heads":20,"vocab_size":33,"position_embedding_type":"rotary"})",
       0.651, 0.651},
      {"XGLM 564M",
       R"({"model_type":"xglm","d_model":1024,"ffn_dim":4096,"num_layers":24,"attention_heads":16,
           "max_position_embeddings":2048,"vocab_size":256008})",
       0.564, 0.564},
      {"GPT-1",
       R"({"model_type":"openai-gpt","n_embd":768,"n_layer":12,"n_head":12,"n_positions":512,
           "vocab_size":40478})",
       0.1165, 0.1165},
      {"CTRL",
       R"({"model_type":"ctrl","n_embd":1280,"dff":8192,"n_layer":48,"n_head":16,"n_positions":256,
           "vocab_size":246534})",
       1.64, 1.64},
      {"XLM-MLM-en 2048",
       R"({"model_type":"xlm","emb_dim":2048,"n_layers":12,"n_heads":16,"n_words":30145,
           "max_position_embeddings":512})",
       0.667, 0.667},
      {"Mamba 2.8B of mamba_ssm", kMambaSsm, 2.77, 2.77},
      {"Mamba-2 2.7B of mamba_ssm", kMamba2Ssm, 2.70, 2.70},
  };
}

TEST(HfBeside, HaveTheirPublishedSize) {
  for (const Case& c : cases()) {
    const Model m = read_shape(c.text);
    EXPECT_NEAR(parameters(m) / 1e9 / c.total, 1, 0.02) << c.what << " " << parameters(m) / 1e9;
    EXPECT_NEAR(active_parameters(m) / 1e9 / c.active, 1, 0.05)
        << c.what << " " << active_parameters(m) / 1e9;
    for (const std::string& w : told(c.text)) {
      EXPECT_FALSE(contains(w, "model_type")) << c.what << ": " << w;
    }
  }
}

}  // namespace
}  // namespace assay
