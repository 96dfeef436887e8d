/* frontends/onnx/expand_decoder.c: RotaryEmbedding and GroupQueryAttention of domain com.microsoft, as decoders have them. */
#include <math.h>
#include <string.h>

#include "frontends/onnx/expand.h"

static const int64_t swapped[4] = {0, 2, 1, 3};

/* X of [batch, heads, length, size], or of [batch, length, columns] where the node has num_heads; positions [batch, length]. */
static const char *rotated(expansion *e, const char *x, const char *positions, const char *cos, const char *sin) {
  return x_node(e, "RotaryEmbedding", (const char *[]){x, cos, sin, positions}, 4);
}

/* X, position_ids, cos_cache, sin_cache. Without num_heads the size of a head is twice that of the caches. */
void expand_rotary(expansion *e) {
  const char *x = x_in(e, 0), *positions = x_in(e, 1), *y;
  const int32_t rank = x_rank(e, x), of_positions = x_rank(e, positions);
  const int64_t heads = x_attr(e, "num_heads", 0), columns = x_known_dim(e, x_in(e, 2), 1);
  if (x_attr(e, "is_packed_batching", 0) != 0) x_refuse(e, "is_packed_batching is not supported");
  if (rank != 3 && rank != 4) x_refuse(e, "the number of dimensions of its operand is not known to be 3 or 4");
  if (of_positions < 0 || of_positions > 2) x_refuse(e, "the number of dimensions of its positions is not known");
  if (heads < 0 || (heads == 0 && x_attr(e, "rotary_embedding_dim", 0) != 0 && rank == 3))
    x_refuse(e, "num_heads is %lld", (long long)heads);
  if (of_positions < 2) { /* of the first place of all rows */
    const char *length = x_dim(e, x, rank == 3 ? 1 : 2), *batch = x_dim(e, x, 0);
    positions = x_2(e, "Add", x_range(e, length), positions);
    positions = x_2(e, "Expand", positions, x_concat(e, 0, (const char *[]){batch, length}, 2));
  }
  const bool is_cut = rank == 3 && heads == 0;
  if (is_cut && columns > 0) {
    x = x_transpose(e, x_reshape(e, x, (const int64_t[]){0, 0, -1, 2 * columns}, 4), swapped, 4);
  } else if (is_cut) {
    const char *half = x_dim(e, x_in(e, 2), 1), *start = x_whole(e, (const int64_t[]){0, 0, -1}, 3);
    x = x_2(e, "Reshape", x, x_concat(e, 0, (const char *[]){start, x_2(e, "Add", half, half)}, 2));
    x = x_transpose(e, x, swapped, 4);
  }
  y = rotated(e, x, positions, x_in(e, 2), x_in(e, 3));
  x_keep(e, "interleaved rotary_embedding_dim");
  if (heads > 0) x_int(e, "num_heads", heads);
  if (is_cut) y = x_reshape(e, x_transpose(e, y, swapped, 4), (const int64_t[]){0, 0, -1}, 3);
  x_give(e, 0, y);
}

/* query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos, sin, position_ids, attention_bias,
 * head_sink, k_scale, v_scale, q_norm_weight, k_norm_weight: an operator of domain "heddle", of the same operands. Its results are
 * named before they are noted as its own. */
void expand_group_query_attention(expansion *e) {
  static const char *const zeros[] = {"qk_output", "sliding_window_cache"};
  const int64_t n = x_attr(e, "num_heads", 0), n_kv = x_attr(e, "kv_num_heads", 0);
  const char *in[16], *out[3];
  for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++)
    if (x_attr(e, zeros[i], 0) > 0) x_refuse(e, "%s is not supported", zeros[i]);
  if (n < 1 || n_kv < 1 || n % n_kv != 0)
    x_refuse(e, "num_heads %lld and kv_num_heads %lld do not go together", (long long)n, (long long)n_kv);
  if (x_has(e, 1) != x_has(e, 2) || x_has(e, 3) != x_has(e, 4))
    x_refuse(e, "keys and values come together, in what is new and in the past");
  if (x_attr(e, "do_rotary", 0) != 0 && (!x_has(e, 7) || !x_has(e, 8))) x_refuse(e, "it has no caches to rotate by");
  for (size_t k = 0; k < 16; k++) in[k] = x_in(e, k);
  x_many(e, "GroupQueryAttention", in, 16, out, 3);
  x_keep(e, "causal do_rotary k_quant_type kv_cache_bit_width kv_num_heads local_window_size num_heads qk_norm_epsilon "
            "rotary_interleaved scale smooth_softmax softcap v_quant_type");
  const float both = x_attr_float(e, "qk_norm_epsilon", 1e-6F), of_k = x_attr_float(e, "k_norm_epsilon", both);
  if (of_k != x_attr_float(e, "q_norm_epsilon", both)) x_refuse(e, "q_norm_epsilon and k_norm_epsilon differ");
  else if (of_k != both) x_float(e, "qk_norm_epsilon", of_k);
  if (x_ok(e)) e->last->domain = (char *)(uintptr_t) "heddle";
  for (size_t k = 0; k < 3; k++) x_give(e, k, out[k]);
}
