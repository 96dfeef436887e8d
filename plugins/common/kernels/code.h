/* What a program is, as numbers: a kernel, the types of its elements, an operator and variants. A driver whose compiler reads
 * text has it written (k_code_text); nothing reads it back. */
#ifndef HEDDLE_PLUGINS_COMMON_KERNELS_CODE_H
#define HEDDLE_PLUGINS_COMMON_KERNELS_CODE_H

#include "heddle/plugin.h"

#include <stdbool.h>

struct heddle_chain; /* plugins/common/chain.h */

/* Every kernel, X(text, name): the one called name in text.cl. First those of texts that GLSL does not have, then those of the
 * portable texts (portable.cl). */
#define K_TEXT_KERNELS(X) \
  X(along, arg_group) \
  X(along, arg_item) \
  X(along, top_heap) \
  X(along, top_rank) \
  X(contract, contract) \
  X(contract, direct) \
  X(contract, spread) \
  X(contract, thin) \
  X(contract, thin_down) \
  X(elementwise, flat) \
  X(elementwise, fused) \
  X(elementwise, same) \
  X(elementwise, walk) \
  X(half, round_bfloat) \
  X(norm, batch_item) \
  X(norm, batch_plane) \
  X(norm, lrn) \
  X(norm, norm_group) \
  X(norm, norm_item) \
  X(reduce, reduce_group) \
  X(reduce, reduce_item) \
  X(rows, softmax_group) \
  X(rows, softmax_item) \
  X(tensor, tensor)
#define K_PORTABLE_KERNELS(X) \
  X(attention, attention) \
  X(attention, attention_cache) \
  X(attention, attention_flash) \
  X(attention, attention_scores) \
  X(attention, rotary) \
  X(attention, rotary_of) \
  X(batch, batch_any) \
  X(batch, batch_mean) \
  X(batch, batch_running) \
  X(batch, batch_sums) \
  X(blocks, from_blocks) \
  X(blocks, matmul_blocks) \
  X(convert, convert) \
  X(fill, range) \
  X(gqa, gqa) \
  X(gqa, gqa_flash) \
  X(gqa, gqa_new) \
  X(lines, cumulate) \
  X(lines, group_normalize) \
  X(lines, hardmax) \
  X(lines, lp_normalize) \
  X(lines, mean_variance) \
  X(lines, reduce_log) \
  X(lines, reduce_real) \
  X(lines, reduce_through) \
  X(lines, reduce_whole) \
  X(lines, softmax_line) \
  X(losses, log_probability) \
  X(losses, loss_all) \
  X(losses, loss_each) \
  X(ml, kernel_matrix) \
  X(ml, lookup_place) \
  X(ml, lookup_value) \
  X(ml, pair_coupling) \
  X(ml, pair_result) \
  X(ml, post_probit) \
  X(ml, post_softmax) \
  X(ml, tree_best) \
  X(ml, tree_scores) \
  X(narrow, narrow_load) \
  X(narrow, narrow_store) \
  X(nbits, matmul_experts) \
  X(nbits, matmul_nbits) \
  X(pick, gather) \
  X(pick, pad) \
  X(pool, average_pool) \
  X(pool, max_pool) \
  X(pool, max_pool_where) \
  X(products, conv_bytes) \
  X(products, det) \
  X(products, einsum) \
  X(products, from_workspace) \
  X(products, gemm_any) \
  X(products, gemm_scaled) \
  X(products, matmul_any) \
  X(products, matmul_bytes) \
  X(products, narrow) \
  X(products, qlinear_conv) \
  X(products, qlinear_matmul) \
  X(products, to_workspace) \
  X(quantize, dequantize) \
  X(quantize, dequantize_real) \
  X(quantize, dequantize_wide) \
  X(quantize, quantize) \
  X(quantize, quotient) \
  X(random, bernoulli) \
  X(random, dropout) \
  X(random, dropout_mask) \
  X(random, multinomial) \
  X(random, random_normal) \
  X(random, random_uniform) \
  X(recurrent, linear_init) \
  X(recurrent, linear_step) \
  X(recurrent, rnn_init) \
  X(recurrent, rnn_state) \
  X(recurrent, rnn_step) \
  X(resize, resize) \
  X(resize, resize_any) \
  X(resize, resize_pick) \
  X(sampling, affine_grid) \
  X(sampling, grid_sample) \
  X(sampling, roi_align) \
  X(scaled, layer) \
  X(scaled, scaled) \
  X(select, crop_pad) \
  X(select, eye) \
  X(select, gather_elements) \
  X(select, gather_nd) \
  X(select, one_hot) \
  X(select, reverse) \
  X(select, scatter_elements) \
  X(select, scatter_elements_with) \
  X(select, scatter_nd) \
  X(select, scatter_nd_with) \
  X(select, tensor_scatter) \
  X(select, trilu) \
  X(signal, dft) \
  X(signal, dynamic_fold) \
  X(signal, dynamic_limits) \
  X(signal, dynamic_quantize) \
  X(signal, dynamic_scale) \
  X(tfidf, tfidf) \
  X(windows, causal_conv) \
  X(windows, causal_state) \
  X(windows, col2im) \
  X(windows, conv_any) \
  X(windows, deform_conv) \
  X(windows, global_lp_pool) \
  X(windows, lp_pool) \
  X(windows, unpool)

enum {
#define K_ENUM(text, name) KERNEL_##name,
  K_TEXT_KERNELS(K_ENUM) KERNEL_TEXTS,
  KERNEL_LAST_TEXT = KERNEL_TEXTS - 1,
  K_PORTABLE_KERNELS(K_ENUM) KERNEL_COUNT
#undef K_ENUM
};
typedef struct k_kernel {
  const char *text, *name;
} k_kernel;
extern const k_kernel k_kernels[KERNEL_COUNT];

static inline bool k_is_portable(uint32_t kernel) {
  return kernel >= KERNEL_TEXTS;
}

/* Element types: X(constant, name in portable texts, name in the others, bytes). */
#define K_ELEMENTS(X) \
  X(W1, "w1", "uchar", 1) \
  X(W2, "w2", "ushort", 2) \
  X(W4, "w4", "uint", 4) \
  X(W8, "w8", "ulong", 8) \
  X(F32, "f32", "float", 4) \
  X(F64, "f64", "double", 8) \
  X(F16, "f16", "half", 2) \
  X(BF16, "bf16", "bfloat", 2) \
  X(I8, "i8", "schar", 1) \
  X(I16, "i16", "short", 2) \
  X(I32, "i32", "int", 4) \
  X(I64, "i64", "long", 8) \
  X(U8, "u8", "uchar", 1) \
  X(U16, "u16", "ushort", 2) \
  X(U32, "u32", "uint", 4) \
  X(U64, "u64", "ulong", 8) \
  X(B8, "b8", "uchar", 1)
enum {
#define K_ELEMENT(constant, name, word, bytes) K_ELEMENT_##constant,
  K_ELEMENTS(K_ELEMENT)
#undef K_ELEMENT
      K_ELEMENT_COUNT
};
extern const char *const k_element_names[K_ELEMENT_COUNT];
extern const uint8_t k_element_bytes[K_ELEMENT_COUNT];

static inline bool k_element_is_real(uint8_t type) {
  return type >= K_ELEMENT_F32 && type <= K_ELEMENT_BF16;
}

/* What a kernel of a text is compiled with, beside its types: macros of these names, of contract.cl, rows.cl, norm.cl, reduce.cl. */
#define K_FLAGS(X) \
  X(HAS_C) \
  X(A_DOWN) \
  X(B_DOWN) \
  X(CONV) \
  X(TRANSPOSED) \
  X(EACH_8) \
  X(RUNS) \
  X(LOG) \
  X(LAYER) \
  X(HAS_BIAS) \
  X(HAS_MEAN) \
  X(HAS_LESS) \
  X(R_SUM) \
  X(R_MEAN) \
  X(R_MAX) \
  X(R_MIN) \
  X(R_PROD)
enum {
#define K_FLAG(name) K_FLAG_##name,
  K_FLAGS(K_FLAG) K_FLAG_COUNT,
#undef K_FLAG
#define K_FLAG(name) K_##name = 1 << K_FLAG_##name,
  K_FLAGS(K_FLAG)
#undef K_FLAG
};

/* Expressions of kind 0 (RAW in elementwise.cl), which are none of operators/. */
#define K_RAWS(X) \
  X(COPY) \
  X(CAST) \
  X(CAST_BOOL) \
  X(CAST_TRUTH) \
  X(CAST_WHOLE) \
  X(WHERE)
enum {
#define K_RAW(name) K_RAW_##name,
  K_RAWS(K_RAW) K_RAW_COUNT
#undef K_RAW
};

enum {
  K_TYPES = 4, /* at most, of a kernel: T0, T1, ...; in elementwise.cl the last is the result's */
  K_RESULT_TYPE = K_TYPES - 1
};

/* Without gaps, so that it can be compared as bytes. wide: elements are counted in 64 bits. op, kind, n_in: of elementwise.cl, an
 * expression's number (scalar.h) with its kind, one of SCALAR_*, or K_RAW_* with kind 0, and its operands. variant: V0 of a
 * portable text. */
typedef struct k_code {
  uint32_t flags;
  int32_t variant;
  uint16_t op;
  uint8_t kernel, wide, kind, n_in, n_types;
  uint8_t types[K_TYPES], unused;
} k_code;
_Static_assert(sizeof(k_code) == 20, "a gap in k_code");
_Static_assert(KERNEL_COUNT < 256, "k_code.kernel is a byte");

/* Are two programs the same? chain: of KERNEL_fused, else NULL. */
bool k_code_same(const k_code *a, const struct heddle_chain *a_chain, const k_code *b,
                 const struct heddle_chain *b_chain);

enum { K_CODE_TEXT = 512 };

/* Writes the macros that a program is compiled with, K_NAME for its kernel among them: "-DNAME=VALUE ...", or as lines. */
void k_code_text(const k_code *code, bool lines, char out[K_CODE_TEXT]);

/* The kernel of a chain, to stand behind its text, of host->alloc. Any thread. */
heddle_status k_chain_text(const heddle_host *host, const struct heddle_chain *chain, char **out, heddle_error *err);

#endif
