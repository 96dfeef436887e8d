/* generate/gguf_graph.c: the graph of a GGUF file's model, in ONNX's operators. Rows of tokens are [length, width]; caches have
 * room for later tokens, and a run writes its rows at the first of its positions. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/sheet.h"
#include "generate/gguf.h"
#include "generate/gguf_build.h"

enum { MOST_LENGTH = 32768, MOST_LAYERS = 1000 };

/* The shape of the model, of the file's values. */
typedef struct model {
  char family[32];
  int64_t width, layers, heads, kv_heads, head, inner, words, context, rotary, window, window_every, length;
  double epsilon, theta, local_theta, attention_cap, logit_cap;
  bool is_gemma, is_interleaved;
} model;

/* Nodes that layers share. */
typedef struct shared {
  uint32_t positions;  /* [1, length] */
  uint32_t last, rows; /* the last position, [1], and the rows of a cache */
  uint32_t cos, sin, local_cos, local_sin;
} shared;

/* ---- values */

static void value_key(const model *m, const char *key, char out[128]) {
  snprintf(out, 128, "%s.%s", m->family, key);
}

/* fallback -1: the file must have it. */
static int64_t whole(heddle__gguf_build *b, const model *m, const char *key, int64_t fallback, int64_t max) {
  char name[128];
  int64_t n = fallback;
  value_key(m, key, name);
  const heddle__gguf_value *v = heddle__gguf_value_of(b->file, name);
  if ((v == NULL && fallback >= 0) || b->status != HEDDLE_OK) return fallback;
  if (heddle__gguf_whole(v, &n) && n >= 1 && n <= max) return n;
  b->status = heddle__fail(b->err, HEDDLE_EFORMAT, "%s: '%s' is %s; expected a whole number from 1 to %lld",
                           b->file->path, name, v == NULL ? "missing" : "another value", (long long)max);
  return 1;
}

static double real(heddle__gguf_build *b, const model *m, const char *key, double fallback) {
  char name[128];
  double x = fallback;
  value_key(m, key, name);
  const heddle__gguf_value *v = heddle__gguf_value_of(b->file, name);
  if (v == NULL || b->status != HEDDLE_OK) return fallback;
  if (heddle__gguf_real(v, &x) && x >= 0) return x;
  b->status = heddle__fail(b->err, HEDDLE_EFORMAT, "%s: '%s' is no number of 0 or more", b->file->path, name);
  return fallback;
}

static void refuse(heddle__gguf_build *b, const char *what) {
  if (b->status == HEDDLE_OK) b->status = heddle__fail(b->err, HEDDLE_EUNSUPPORTED, "%s: %s", b->file->path, what);
}

static void read_family(heddle__gguf_build *b, model *m) {
  static const char *const known[] = {"llama", "qwen2", "qwen3", "gemma", "gemma2", "gemma3"};
  heddle__gguf_text t = heddle__gguf_string(heddle__gguf_value_of(b->file, "general.architecture"));
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (t.bytes == strlen(known[i]) && memcmp(t.data, known[i], t.bytes) == 0) strcpy(m->family, known[i]);
  if (m->family[0] == '\0')
    b->status =
        heddle__fail(b->err, HEDDLE_EUNSUPPORTED,
                     "%s: general.architecture is '%.*s'; llama, qwen2, qwen3, gemma, gemma2 and gemma3 are supported",
                     b->file->path, (int)(t.bytes < 64 ? t.bytes : 64), t.data);
  m->is_gemma = strncmp(m->family, "gemma", 5) == 0;
  m->is_interleaved = strcmp(m->family, "llama") == 0;
}

static void read_scaling(heddle__gguf_build *b, const model *m) {
  char name[128];
  value_key(m, "rope.scaling.type", name);
  const heddle__gguf_value *v = heddle__gguf_value_of(b->file, name);
  const heddle__gguf_text t = heddle__gguf_string(v);
  const bool none = t.bytes == 4 && memcmp(t.data, "none", 4) == 0,
             linear = t.bytes == 6 && memcmp(t.data, "linear", 6) == 0;
  if (v != NULL && !none && !linear) refuse(b, "rope.scaling.type is none of none and linear");
}

/* What the file says about its tokens goes with the embeddings. */
static void read_words(heddle__gguf_build *b, const model *m) {
  static const char *const tokens[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"};
  const heddle__gguf_value *list = heddle__gguf_value_of(b->file, "tokenizer.ggml.tokens");
  const int64_t words = whole(b, m, "vocab_size", m->words, INT32_MAX);
  if (b->status == HEDDLE_OK && words != m->words)
    b->status =
        heddle__fail(b->err, HEDDLE_EFORMAT, "%s: '%s.vocab_size' is %lld, and 'token_embd.weight' has %lld rows",
                     b->file->path, m->family, (long long)words, (long long)m->words);
  if (b->status == HEDDLE_OK && list != NULL && list->is_array && list->count != (uint64_t)m->words)
    b->status = heddle__fail(b->err, HEDDLE_EFORMAT,
                             "%s: 'tokenizer.ggml.tokens' has %llu, and 'token_embd.weight' has %lld rows",
                             b->file->path, (unsigned long long)list->count, (long long)m->words);
  for (size_t i = 0; i < 2 && b->status == HEDDLE_OK; i++) {
    int64_t token;
    const heddle__gguf_value *v = heddle__gguf_value_of(b->file, tokens[i]);
    if (v != NULL && (!heddle__gguf_whole(v, &token) || token < 0 || token >= m->words))
      b->status = heddle__fail(b->err, HEDDLE_EFORMAT, "%s: '%s' is no token; expected 0 to %lld", b->file->path,
                               tokens[i], (long long)m->words - 1);
  }
}

static void read_model(heddle__gguf_build *b, model *m, uint32_t max_length) {
  const heddle__gguf_tensor *embed = heddle__gguf_tensor_of(b->file, "token_embd.weight");
  read_family(b, m);
  m->width = whole(b, m, "embedding_length", -1, 1 << 20);
  m->layers = whole(b, m, "block_count", -1, MOST_LAYERS);
  m->heads = whole(b, m, "attention.head_count", -1, 1 << 16);
  m->kv_heads = whole(b, m, "attention.head_count_kv", m->heads, 1 << 16);
  m->head = whole(b, m, "attention.key_length", m->width / m->heads, 1 << 16);
  m->inner = whole(b, m, "feed_forward_length", -1, 1 << 24);
  m->context = whole(b, m, "context_length", -1, INT32_MAX);
  m->rotary = whole(b, m, "rope.dimension_count", m->head, m->head);
  m->window = whole(b, m, "attention.sliding_window", 0, INT32_MAX);
  m->epsilon = real(b, m, "attention.layer_norm_rms_epsilon", 1e-6);
  m->theta = real(b, m, "rope.freq_base", 10000);
  m->attention_cap = real(b, m, "attn_logit_softcapping", 0);
  m->logit_cap = real(b, m, "final_logit_softcapping", 0);
  m->local_theta = strcmp(m->family, "gemma3") == 0 ? 10000 : m->theta;
  m->window_every = strcmp(m->family, "gemma3") == 0 ? 6 : strcmp(m->family, "gemma2") == 0 ? 2 : 1;
  m->words = embed != NULL && embed->ndim == 2 ? (int64_t)embed->dims[1] : 1;
  m->length = max_length > 0 ? max_length : m->context < MOST_LENGTH ? m->context : MOST_LENGTH;
  if (m->length > m->context) m->length = m->context;
  if (b->status != HEDDLE_OK) return;
  if (m->heads % m->kv_heads != 0 || m->head < 2 || m->rotary < 2 || m->head % 2 != 0 || m->rotary % 2 != 0)
    refuse(b, "its numbers of heads, or their size, do not go together");
  if (m->theta <= 0) refuse(b, "its rope.freq_base is 0");
  if (m->attention_cap > 1e9 || m->logit_cap > 1e9) refuse(b, "its softcapping is out of range");
  double factor = real(b, m, "rope.scaling.factor", 1);
  if (factor != 1 && factor != 0) refuse(b, "rope.scaling is not supported");
  read_scaling(b, m);
  read_words(b, m);
  if (whole(b, m, "expert_count", 0, INT32_MAX) > 0) refuse(b, "models with experts are not supported");
  if (whole(b, m, "attention.value_length", m->head, INT32_MAX) != m->head)
    refuse(b, "values of another size than keys are not supported");
}

/* ---- parts of layers */

static uint32_t norm(heddle__gguf_build *b, const model *m, uint32_t x, const char *name, int64_t n) {
  char attrs[64];
  snprintf(attrs, sizeof attrs, "\"axis\": -1, \"epsilon\": %llde-12", llround(m->epsilon * 1e12)); /* in any locale */
  return heddle__gguf_node(b, "RMSNormalization", NULL, attrs, 2, x, heddle__gguf_weight(b, name, n, 0));
}

static uint32_t product(heddle__gguf_build *b, uint32_t x, const char *weight, const char *bias, int64_t out,
                        int64_t in) {
  const heddle__gguf_matrix w = heddle__gguf_matrix_of(b, weight, out, in);
  const bool is_added = bias != NULL && heddle__gguf_tensor_of(b->file, bias) != NULL;
  const uint32_t added = is_added ? heddle__gguf_weight(b, bias, out, 0) : 0;
  return heddle__gguf_product(b, NULL, x, w, is_added ? &added : NULL);
}

static uint32_t reshape(heddle__gguf_build *b, uint32_t x, const int64_t *shape, uint32_t n) {
  return heddle__gguf_node(b, "Reshape", NULL, "", 2, x, heddle__gguf_wholes(b, shape, n));
}

static uint32_t capped(heddle__gguf_build *b, uint32_t x, double cap, const char *name) {
  const uint32_t c = heddle__gguf_real_constant(b, (float)cap);
  x = heddle__gguf_node(b, "Div", NULL, "", 2, x, c);
  return heddle__gguf_node(b, "Mul", name, "", 2, heddle__gguf_node(b, "Tanh", NULL, "", 1, x), c);
}

/* Cosines and sines of each position. */
static void rotary(heddle__gguf_build *b, const model *m, double theta, uint32_t *cos_id, uint32_t *sin_id) {
  const int64_t half = m->rotary / 2;
  const heddle__gguf_tensor *t = heddle__gguf_tensor_of(b->file, "rope_freqs.weight");
  float *factors = t != NULL && t->count == (uint64_t)half ? heddle__alloc((size_t)half, sizeof *factors) : NULL;
  float *table[2];
  if (factors != NULL) heddle__gguf_read(t, factors);
  const int64_t shape[2] = {m->length, half};
  *cos_id = heddle__gguf_table(b, shape, &table[0]);
  *sin_id = heddle__gguf_table(b, shape, &table[1]);
  for (int64_t i = 0; b->status == HEDDLE_OK && i < half; i++) {
    const double rate = pow(theta, -2.0 * (double)i / (double)m->rotary) / (factors != NULL ? (double)factors[i] : 1);
    for (int64_t p = 0; p < m->length; p++) {
      table[0][p * half + i] = (float)cos((double)p * rate);
      table[1][p * half + i] = (float)sin((double)p * rate);
    }
  }
  heddle__free(factors);
}

/* [length, heads * head] as [1, length, heads * head], after the norm of each head that some families have. */
static uint32_t normed(heddle__gguf_build *b, const model *m, uint32_t x, int64_t heads, const char *norm_name) {
  if (norm_name != NULL && heddle__gguf_tensor_of(b->file, norm_name) != NULL)
    x = norm(b, m, reshape(b, x, (const int64_t[]){-1, heads, m->head}, 3), norm_name, m->head);
  return reshape(b, x, (const int64_t[]){1, -1, heads * m->head}, 3);
}

#define ATTENTION "attention."
#define LAYER(name, text) snprintf(name, sizeof name, "blk.%lld." text, (long long)i)

static uint32_t attention(heddle__gguf_build *b, const model *m, const shared *s, const uint32_t past[2], uint32_t x,
                          int64_t i) {
  char w[64], bias[64], n[64], name[64], attrs[256];
  const bool is_local = m->window > 0 && (m->window_every == 1 || (i + 1) % m->window_every != 0);
  LAYER(w, "attn_q.weight"), LAYER(bias, "attn_q.bias"), LAYER(n, "attn_q_norm.weight");
  const uint32_t q = normed(b, m, product(b, x, w, bias, m->heads * m->head, m->width), m->heads, n);
  LAYER(w, "attn_k.weight"), LAYER(bias, "attn_k.bias"), LAYER(n, "attn_k_norm.weight");
  const uint32_t k = normed(b, m, product(b, x, w, bias, m->kv_heads * m->head, m->width), m->kv_heads, n);
  LAYER(w, "attn_v.weight"), LAYER(bias, "attn_v.bias");
  const uint32_t v = normed(b, m, product(b, x, w, bias, m->kv_heads * m->head, m->width), m->kv_heads, NULL);
  snprintf(attrs, sizeof attrs,
           "\"num_heads\": %lld, \"kv_num_heads\": %lld, \"do_rotary\": 1, \"rotary_interleaved\": %d, "
           "\"local_window_size\": %lld, \"softcap\": %llde-6",
           (long long)m->heads, (long long)m->kv_heads, m->is_interleaved ? 1 : 0,
           (long long)(is_local ? m->window : -1), llround(m->attention_cap * 1e6)); /* in any locale */
  snprintf(name, sizeof name, ATTENTION "%lld", (long long)i);
  const uint32_t node =
      heddle__gguf_own_node(b, 3, "GroupQueryAttention", name, attrs, 9, q, k, v, past[0], past[1], s->last, s->rows,
                            is_local ? s->local_cos : s->cos, is_local ? s->local_sin : s->sin);
  heddle__gguf_output(b, node, 1);
  heddle__gguf_output(b, node, 2);
  x = reshape(b, node, (const int64_t[]){-1, m->heads * m->head}, 2);
  LAYER(w, "attn_output.weight"), LAYER(bias, "attn_output.bias");
  return product(b, x, w, bias, m->width, m->heads * m->head);
}

static uint32_t feed(heddle__gguf_build *b, const model *m, uint32_t x, int64_t i) {
  char w[64];
  LAYER(w, "ffn_gate.weight");
  uint32_t gate = product(b, x, w, NULL, m->inner, m->width);
  LAYER(w, "ffn_up.weight");
  const uint32_t up = product(b, x, w, NULL, m->inner, m->width);
  if (m->is_gemma) gate = heddle__gguf_node(b, "Gelu", NULL, "\"approximate\": \"tanh\"", 1, gate);
  else gate = heddle__gguf_node(b, "Mul", NULL, "", 2, gate, heddle__gguf_node(b, "Sigmoid", NULL, "", 1, gate));
  LAYER(w, "ffn_down.weight");
  return product(b, heddle__gguf_node(b, "Mul", NULL, "", 2, gate, up), w, NULL, m->width, m->inner);
}

/* The norm behind a part, which only some families have. */
static uint32_t after(heddle__gguf_build *b, const model *m, uint32_t x, const char *name) {
  return heddle__gguf_tensor_of(b->file, name) != NULL ? norm(b, m, x, name, m->width) : x;
}

static uint32_t layer(heddle__gguf_build *b, const model *m, const shared *s, const uint32_t past[2], uint32_t x,
                      int64_t i) {
  char w[64];
  LAYER(w, "attn_norm.weight");
  uint32_t y = attention(b, m, s, past, norm(b, m, x, w, m->width), i);
  LAYER(w, "post_attention_norm.weight");
  x = heddle__gguf_node(b, "Add", NULL, "", 2, x, after(b, m, y, w));
  LAYER(w, "ffn_norm.weight");
  y = feed(b, m, norm(b, m, x, w, m->width), i);
  LAYER(w, "post_ffw_norm.weight");
  return heddle__gguf_node(b, "Add", NULL, "", 2, x, after(b, m, y, w));
}

/* ---- the whole */

static void begin(heddle__gguf_build *b, const model *m, shared *s, uint32_t first_cache) {
  const int64_t flat = -1, two = 2;
  const uint32_t row = heddle__gguf_node(b, "Reshape", NULL, "", 2, s->positions, heddle__gguf_wholes(b, &flat, 1));
  s->last = heddle__gguf_node(b, "Gather", NULL, "\"axis\": 0", 2, row, heddle__gguf_wholes(b, &flat, 1));
  s->last = heddle__gguf_node(b, "Cast", NULL, "\"to\": 6", 1, s->last);
  const uint32_t shape = heddle__gguf_node(b, "Shape", NULL, "", 1, first_cache);
  s->rows = heddle__gguf_node(b, "Gather", NULL, "\"axis\": 0", 2, shape, heddle__gguf_wholes(b, &two, 0));
  s->rows = heddle__gguf_node(b, "Cast", NULL, "\"to\": 6", 1, s->rows);
  rotary(b, m, m->theta, &s->cos, &s->sin);
  s->local_cos = s->cos;
  s->local_sin = s->sin;
  if (m->window > 0 && m->local_theta != m->theta) rotary(b, m, m->local_theta, &s->local_cos, &s->local_sin);
}

static void write_graph(heddle__gguf_build *b, const model *m) {
  shared s = {0};
  uint32_t(*past)[2] = heddle__alloc((size_t)m->layers, sizeof *past);
  if (past == NULL) {
    b->status = heddle__no_memory(b->err, "the graph of a GGUF file");
    return;
  }
  const uint32_t ids = heddle__gguf_input(b, "input_ids", "int64", "[1, \"length\"]");
  s.positions = heddle__gguf_input(b, "position_ids", "int64", "[1, \"length\"]");
  for (int64_t i = 0; i < m->layers; i++)
    for (int k = 0; k < 2; k++) {
      char name[64], shape[96];
      snprintf(name, sizeof name, "past_key_values.%lld.%s", (long long)i, k == 0 ? "key" : "value");
      snprintf(shape, sizeof shape, "[1, %lld, \"rows\", %lld]", (long long)m->kv_heads, (long long)m->head);
      past[i][k] = heddle__gguf_input(b, name, "float32", shape);
    }
  begin(b, m, &s, past[0][0]);
  const int64_t flat = -1;
  const heddle__gguf_matrix embed = heddle__gguf_matrix_of(b, "token_embd.weight", m->words, m->width);
  const uint32_t row = heddle__gguf_node(b, "Reshape", NULL, "", 2, ids, heddle__gguf_wholes(b, &flat, 1));
  uint32_t x = heddle__gguf_rows(b, embed, row);
  if (m->is_gemma)
    x = heddle__gguf_node(b, "Mul", NULL, "", 2, x, heddle__gguf_real_constant(b, sqrtf((float)m->width)));
  for (int64_t i = 0; i < m->layers && b->status == HEDDLE_OK; i++) x = layer(b, m, &s, past[i], x, i);
  x = norm(b, m, x, "output_norm.weight", m->width);
  const bool is_tied = heddle__gguf_tensor_of(b->file, "output.weight") == NULL;
  const heddle__gguf_matrix head = is_tied ? embed : heddle__gguf_matrix_of(b, "output.weight", m->words, m->width);
  x = heddle__gguf_product(b, m->logit_cap > 0 ? NULL : "logits", x, head, NULL);
  if (m->logit_cap > 0) x = capped(b, x, m->logit_cap, "logits");
  heddle__gguf_output(b, x, 0);
  heddle__free(past);
}

static void take_config(const heddle__gguf *f, const model *m, heddle__generate_config *c) {
  int64_t token;
  strcpy(c->type, m->family);
  c->vocabulary = m->words;
  c->context = c->max_length = m->length;
  c->layers = m->layers;
  c->kv_heads = m->kv_heads;
  c->head_size = m->head;
  c->shares = c->by_positions = true;
  strcpy(c->present[0], ATTENTION "%d:1");
  strcpy(c->present[1], ATTENTION "%d:2");
  if (heddle__gguf_whole(heddle__gguf_value_of(f, "tokenizer.ggml.bos_token_id"), &token)) c->bos = token;
  if (heddle__gguf_whole(heddle__gguf_value_of(f, "tokenizer.ggml.eos_token_id"), &token))
    c->stops[c->n_stops++] = token;
}

heddle_status heddle__gguf_model(heddle_context *ctx, const char *path, const heddle_model_options *options,
                                 uint32_t max_length, heddle__generate_config *config, heddle_graph **graph,
                                 heddle_params **params, heddle_error *err) {
  heddle__gguf file;
  heddle__gguf_build b = {.file = &file, .err = err};
  model m = {0};
  *graph = NULL;
  *params = NULL;
  heddle_status s = heddle__gguf_open(ctx, path, options, &b, err);
  if (s != HEDDLE_OK) return s;
  read_model(&b, &m, max_length);
  if (b.status == HEDDLE_OK) write_graph(&b, &m);
  s = heddle__gguf_finish(&b, path, graph, params);
  if (s == HEDDLE_OK) take_config(&file, &m, config);
  heddle__gguf_free(&file);
  return s;
}

bool heddle__gguf_is(const char *path) {
  const size_t n = strlen(path);
  return n > 5 && strcmp(path + n - 5, ".gguf") == 0;
}
