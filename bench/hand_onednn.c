/* Networks straight on oneDNN: primitives made once, with operands bound once, and executed one after the other. Values
 * are laid out as oneDNN chooses for the first operator that makes them; reorders are where two disagree. */
#include "bench/hand_onednn.h"

#ifdef HEDDLE_BENCH_ONEDNN

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 40, MOST_ARGS = 8, MOST_OWNED = 200 };

typedef struct step {
  dnnl_primitive_t primitive;
  int n_args;
  dnnl_exec_arg_t args[MOST_ARGS];
} step;

struct hand_net {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  void (*omp_set)(int); /* of the OpenMP run time that libdnnl brings */
  int threads, n_steps, n_owned;
  step steps[MOST_STEPS];
  dnnl_memory_t owned[MOST_OWNED];
  void *bytes[MOST_OWNED];
};

bool hand_is_built(void) {
  return true;
}

static void check(dnnl_status_t s) {
  if (s == dnnl_success) return;
  fprintf(stderr, "oneDNN: status %d\n", (int)s);
  exit(1);
}

static hand_net *start(int threads) {
  hand_net *net = calloc(1, sizeof *net);
  if (net == NULL) exit(1);
  net->threads = threads;
  void *library = dlopen("libdnnl.so.3", RTLD_LAZY | RTLD_LOCAL);
  void *symbol = library != NULL ? dlsym(library, "omp_set_num_threads") : NULL;
  if (symbol == NULL) exit(1);
  memcpy(&net->omp_set, &symbol, sizeof net->omp_set);
  net->omp_set(threads);
  check(dnnl_engine_create(&net->engine, dnnl_cpu, 0));
  check(dnnl_stream_create(&net->stream, net->engine, dnnl_stream_default_flags));
  return net;
}

/* Memory of a descriptor, with small numbers in it. */
static dnnl_memory_t memory(hand_net *net, const_dnnl_memory_desc_t md) {
  const size_t bytes = dnnl_memory_desc_get_size(md);
  if (net->n_owned == MOST_OWNED) exit(1);
  float *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (p == NULL) exit(1);
  for (size_t i = 0; i < bytes / sizeof *p; i++) p[i] = (float)(i % 17) * 1e-3f - 8e-3f;
  check(dnnl_memory_create(&net->owned[net->n_owned], md, net->engine, p));
  net->bytes[net->n_owned] = p;
  return net->owned[net->n_owned++];
}

static const_dnnl_memory_desc_t desc_of(dnnl_memory_t m) {
  const_dnnl_memory_desc_t md;
  check(dnnl_memory_get_memory_desc(m, &md));
  return md;
}

/* Descriptors of this program live as long as it does. */
static dnnl_memory_desc_t desc(int ndims, const int64_t *dims, dnnl_format_tag_t tag) {
  dnnl_memory_desc_t md;
  dnnl_dims_t d = {0};
  memcpy(d, dims, (size_t)ndims * sizeof *dims);
  check(dnnl_memory_desc_create_with_tag(&md, ndims, d, dnnl_f32, tag));
  return md;
}

static dnnl_memory_desc_t image(int channels, int size, dnnl_format_tag_t tag) {
  return desc(4, (const int64_t[]){1, channels, size, size}, tag);
}

static void bind(step *s, int arg, dnnl_memory_t m) {
  s->args[s->n_args++] = (dnnl_exec_arg_t){arg, m};
}

/* A step of a primitive descriptor, with its scratch memory; gives its result, newly allocated. */
static dnnl_memory_t add(hand_net *net, dnnl_primitive_desc_t pd, step **out) {
  if (net->n_steps == MOST_STEPS) exit(1);
  step *s = *out = &net->steps[net->n_steps++];
  check(dnnl_primitive_create(&s->primitive, pd));
  dnnl_memory_t dst = memory(net, dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_DST));
  bind(s, DNNL_ARG_DST, dst);
  const_dnnl_memory_desc_t scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_SCRATCHPAD);
  if (dnnl_memory_desc_get_size(scratch) > 0) bind(s, DNNL_ARG_SCRATCHPAD, memory(net, scratch));
  return dst;
}

static dnnl_primitive_attr_t user_scratch(void) {
  dnnl_primitive_attr_t attr;
  check(dnnl_primitive_attr_create(&attr));
  check(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
  return attr;
}

/* m in the layout of want, reordered where it is not. */
static dnnl_memory_t in_layout(hand_net *net, dnnl_memory_t m, const_dnnl_memory_desc_t want) {
  dnnl_primitive_desc_t pd;
  step *s;
  if (dnnl_memory_desc_equal(desc_of(m), want)) return m;
  dnnl_primitive_attr_t attr = user_scratch();
  check(dnnl_reorder_primitive_desc_create(&pd, desc_of(m), net->engine, want, net->engine, attr));
  dnnl_memory_t out = add(net, pd, &s);
  bind(s, DNNL_ARG_SRC, m);
  dnnl_primitive_desc_destroy(pd);
  dnnl_primitive_attr_destroy(attr);
  return out;
}

enum { PLAIN_CONV = 0, WITH_BIAS = 1, WITH_RELU = 2 };

/* residual NULL: nothing is added. */
static dnnl_memory_t conv(hand_net *net, dnnl_memory_t x, hand_conv c, dnnl_format_tag_t tag, unsigned how,
                          dnnl_memory_t residual) {
  const int64_t weights[] = {c.out, c.in, c.kernel, c.kernel};
  const int64_t grouped[] = {c.groups, c.out / c.groups, c.in / c.groups, c.kernel, c.kernel};
  const dnnl_dims_t one = {1, 1}, none = {0, 0}, pad = {c.kernel / 2, c.kernel / 2};
  dnnl_memory_desc_t src = image(c.in, c.size, tag), dst = image(c.out, c.size, tag);
  dnnl_memory_desc_t w = c.groups > 1 ? desc(5, grouped, dnnl_format_tag_any) : desc(4, weights, dnnl_format_tag_any);
  dnnl_memory_desc_t b = (how & WITH_BIAS) != 0 ? desc(1, (const int64_t[]){c.out}, dnnl_a) : NULL;
  dnnl_primitive_attr_t attr = user_scratch();
  dnnl_post_ops_t posts;
  dnnl_primitive_desc_t pd;
  step *s;
  check(dnnl_post_ops_create(&posts));
  if (residual != NULL) check(dnnl_post_ops_append_binary(posts, dnnl_binary_add, desc_of(residual)));
  if ((how & WITH_RELU) != 0) check(dnnl_post_ops_append_eltwise(posts, dnnl_eltwise_relu, 0, 0));
  check(dnnl_primitive_attr_set_post_ops(attr, posts));
  check(dnnl_convolution_forward_primitive_desc_create(
      &pd, net->engine, dnnl_forward_inference, dnnl_convolution_direct, src, w, b, dst, one, none, pad, pad, attr));
  dnnl_memory_t in = in_layout(net, x, dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_SRC));
  dnnl_memory_t out = add(net, pd, &s);
  bind(s, DNNL_ARG_SRC, in);
  bind(s, DNNL_ARG_WEIGHTS, memory(net, dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_WEIGHTS)));
  if (b != NULL) bind(s, DNNL_ARG_BIAS, memory(net, b));
  if (residual != NULL) bind(s, DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, residual);
  dnnl_post_ops_destroy(posts);
  dnnl_primitive_attr_destroy(attr);
  dnnl_primitive_desc_destroy(pd);
  return out;
}

hand_net *hand_row(hand_conv c, int count, int threads) {
  hand_net *net = start(threads);
  dnnl_memory_t x = memory(net, image(c.in, c.size, dnnl_abcd));
  for (int i = 0; i < count; i++) x = conv(net, x, hand_row_member(c, i), dnnl_format_tag_any, PLAIN_CONV, NULL);
  in_layout(net, x, image(count % 2 == 0 ? c.in : c.out, c.size, dnnl_abcd));
  return net;
}

/* ---- digits: channels last throughout, which is what oneDNN chooses for most of it */

static dnnl_memory_t times(hand_net *net, dnnl_memory_t x, const_dnnl_memory_desc_t factor) {
  dnnl_primitive_attr_t attr = user_scratch();
  dnnl_primitive_desc_t pd;
  step *s;
  check(dnnl_binary_primitive_desc_create(&pd, net->engine, dnnl_binary_mul, desc_of(x), factor, desc_of(x), attr));
  dnnl_memory_t out = add(net, pd, &s);
  bind(s, DNNL_ARG_SRC_0, x);
  bind(s, DNNL_ARG_SRC_1, memory(net, factor));
  dnnl_primitive_desc_destroy(pd);
  dnnl_primitive_attr_destroy(attr);
  return out;
}

static dnnl_memory_t pool(hand_net *net, dnnl_memory_t x, dnnl_alg_kind_t alg, int kernel, int channels, int size) {
  const dnnl_dims_t k = {kernel, kernel}, none = {0, 0};
  dnnl_primitive_attr_t attr = user_scratch();
  dnnl_primitive_desc_t pd;
  step *s;
  check(dnnl_pooling_forward_primitive_desc_create(&pd, net->engine, dnnl_forward_inference, alg, desc_of(x),
                                                   image(channels, size, dnnl_acdb), k, k, none, none, none, attr));
  dnnl_memory_t out = add(net, pd, &s);
  bind(s, DNNL_ARG_SRC, x);
  dnnl_primitive_desc_destroy(pd);
  dnnl_primitive_attr_destroy(attr);
  return out;
}

static dnnl_memory_t concat(hand_net *net, dnnl_memory_t a, dnnl_memory_t b) {
  const_dnnl_memory_desc_t parts[] = {desc_of(a), desc_of(b)};
  dnnl_primitive_attr_t attr = user_scratch();
  dnnl_primitive_desc_t pd;
  step *s;
  check(dnnl_concat_primitive_desc_create(&pd, net->engine, NULL, 2, 1, parts, attr));
  dnnl_memory_t out = add(net, pd, &s);
  bind(s, DNNL_ARG_MULTIPLE_SRC, a);
  bind(s, DNNL_ARG_MULTIPLE_SRC + 1, b);
  dnnl_primitive_desc_destroy(pd);
  dnnl_primitive_attr_destroy(attr);
  return out;
}

/* The same bytes under another shape. */
static dnnl_memory_t seen_as(hand_net *net, dnnl_memory_t m, const_dnnl_memory_desc_t md) {
  void *p;
  check(dnnl_memory_get_data_handle(m, &p));
  check(dnnl_memory_create(&net->owned[net->n_owned], md, net->engine, p));
  return net->owned[net->n_owned++];
}

static void classify(hand_net *net, dnnl_memory_t x, int n) {
  const int64_t row[] = {1, n}, w[] = {n, 10}, out[] = {1, 10};
  dnnl_primitive_attr_t attr = user_scratch();
  dnnl_primitive_desc_t pd;
  step *s;
  check(dnnl_matmul_primitive_desc_create(&pd, net->engine, desc(2, row, dnnl_ab), desc(2, w, dnnl_format_tag_any),
                                          desc(2, out, dnnl_ab), desc(2, out, dnnl_ab), attr));
  dnnl_memory_t y = add(net, pd, &s);
  bind(s, DNNL_ARG_SRC, x);
  bind(s, DNNL_ARG_WEIGHTS, memory(net, dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_WEIGHTS)));
  bind(s, DNNL_ARG_BIAS, memory(net, desc(2, out, dnnl_ab)));
  dnnl_primitive_desc_destroy(pd);
  check(dnnl_softmax_forward_primitive_desc_create(&pd, net->engine, dnnl_forward_inference, dnnl_softmax_accurate,
                                                   desc(2, out, dnnl_ab), desc(2, out, dnnl_ab), 1, attr));
  add(net, pd, &s);
  bind(s, DNNL_ARG_SRC, y);
  dnnl_primitive_desc_destroy(pd);
  dnnl_primitive_attr_destroy(attr);
}

hand_net *hand_digits(void) {
  const unsigned both = WITH_BIAS | WITH_RELU;
  const int64_t scalar[] = {1, 1, 1, 1}, gain[] = {1, 48, 1, 1};
  hand_net *net = start(1);
  dnnl_memory_t x = memory(net, image(1, 8, dnnl_abcd));
  x = times(net, x, desc(4, scalar, dnnl_abcd));
  dnnl_memory_t stem = conv(net, x, (hand_conv){1, 16, 3, 8, 1}, dnnl_acdb, both, NULL);
  x = conv(net, stem, (hand_conv){16, 16, 3, 8, 1}, dnnl_acdb, both, NULL);
  x = conv(net, x, (hand_conv){16, 16, 3, 8, 1}, dnnl_acdb, both, stem);
  dnnl_memory_t wide = conv(net, x, (hand_conv){16, 8, 1, 8, 1}, dnnl_acdb, both, NULL);
  wide = conv(net, wide, (hand_conv){8, 24, 5, 8, 1}, dnnl_acdb, both, NULL);
  wide = pool(net, wide, dnnl_pooling_max, 2, 24, 4);
  dnnl_memory_t fine = conv(net, x, (hand_conv){16, 24, 3, 8, 1}, dnnl_acdb, both, NULL);
  fine = pool(net, fine, dnnl_pooling_max, 2, 24, 4);
  x = concat(net, fine, wide);
  x = times(net, x, desc(4, gain, dnnl_abcd));
  x = conv(net, x, (hand_conv){48, 48, 3, 4, 1}, dnnl_acdb, both, NULL);
  dnnl_memory_t mean = pool(net, x, dnnl_pooling_avg_exclude_padding, 4, 48, 1);
  mean = seen_as(net, mean, desc(2, (const int64_t[]){1, 48}, dnnl_ab));
  dnnl_memory_t map = conv(net, x, (hand_conv){48, 8, 1, 4, 1}, dnnl_acdb, both, NULL);
  map = in_layout(net, map, image(8, 4, dnnl_abcd));
  map = seen_as(net, map, desc(2, (const int64_t[]){1, 128}, dnnl_ab));
  classify(net, concat(net, mean, map), 176);
  return net;
}

void hand_run(hand_net *net) {
  net->omp_set(net->threads);
  for (int i = 0; i < net->n_steps; i++) {
    const step *s = &net->steps[i];
    check(dnnl_primitive_execute(s->primitive, net->stream, s->n_args, s->args));
  }
  check(dnnl_stream_wait(net->stream));
}

void hand_free(hand_net *net) {
  for (int i = 0; i < net->n_steps; i++) dnnl_primitive_destroy(net->steps[i].primitive);
  for (int i = 0; i < net->n_owned; i++) {
    dnnl_memory_destroy(net->owned[i]);
    free(net->bytes[i]);
  }
  dnnl_stream_destroy(net->stream);
  dnnl_engine_destroy(net->engine);
  free(net);
}

#else

#include <stddef.h>

bool hand_is_built(void) {
  return false;
}

hand_net *hand_row(hand_conv c, int count, int threads) {
  (void)c, (void)count, (void)threads;
  return NULL;
}

hand_net *hand_digits(void) {
  return NULL;
}

void hand_run(hand_net *net) {
  (void)net;
}

void hand_free(hand_net *net) {
  (void)net;
}

#endif
