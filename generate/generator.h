/* generate/generator.h: what the files of a generator share. A generator has one executor. Its list of tokens is `tokens`;
 * the first `cached` of them are in the caches. Behind these may be guesses of a draft that a run computed ahead: then all
 * tokens are cached. One thread at a time, but for `cancelled`. */
#ifndef HEDDLE_GENERATE_GENERATOR_H
#define HEDDLE_GENERATE_GENERATOR_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "heddle/generate.h"

enum { HEDDLE__GENERATE_STOPS = 64, HEDDLE__GENERATE_NAME = 128, HEDDLE__GUESSES = 16 };

/* What the files beside a model say. Names of caches have one "%d" for the layer. 0: not given. */
typedef struct heddle__generate_config {
  char *model_path;
  char *path; /* of the configuration, for messages */
  char type[64];
  char ids[HEDDLE__GENERATE_NAME], mask[HEDDLE__GENERATE_NAME], positions[HEDDLE__GENERATE_NAME];
  char logits[HEDDLE__GENERATE_NAME];
  char past[2][HEDDLE__GENERATE_NAME], present[2][HEDDLE__GENERATE_NAME]; /* of keys, of values */
  int64_t vocabulary, context, max_length, layers, kv_heads, head_size;
  int64_t bos;
  int64_t stops[HEDDLE__GENERATE_STOPS];
  uint32_t n_stops;
  bool by_positions; /* the graph has no mask: a row is seen where its number is no greater than a query's position */
  bool shares;       /* caches have room for later tokens, and a run writes into that room */
} heddle__generate_config;

heddle_status heddle__generate_config_read(const char *path, heddle__generate_config *out, heddle_error *err);
void heddle__generate_config_names(heddle__generate_config *c); /* those of Optimum */
void heddle__generate_config_free(heddle__generate_config *c);

/* An input whose memory a run reads. bound: the shape the executor knows. */
typedef struct heddle__generate_port {
  int32_t index; /* of the executor; -1: the model has none */
  heddle_dtype dtype;
  heddle_tensor *tensor;
  int64_t columns; /* of tensor, which is [1, columns] */
} heddle__generate_port;

static inline void heddle__port_put(const heddle__generate_port *port, int64_t i, int64_t value) {
  void *data = heddle_tensor_data(port->tensor);
  if (port->dtype.bits == 64) ((int64_t *)data)[i] = value;
  else ((int32_t *)data)[i] = (int32_t)value;
}

typedef struct heddle__generate_cache {
  uint32_t state; /* its number */
  heddle_dtype dtype;
  int64_t heads, size;
} heddle__generate_cache;

/* Edits of logits in place, undone after the choice, and memory for a choice. */
typedef struct heddle__sampler {
  uint32_t vocabulary;
  float *logits;            /* converted, where they are not float32; else NULL until needed */
  float *weights;           /* made when first needed, with chosen and spare behind them */
  uint32_t *chosen, *spare; /* with room for 16 more */
  float *groups;            /* the greatest logit of each group of a block: passes.h */
  struct heddle__block {
    float greatest; /* logit */
    double sum;     /* of weights */
  } * blocks;
  uint64_t *seen; /* a bit for each token */
  struct heddle__edit {
    uint32_t token;
    float before;
  } * edits;
  size_t n_edits, room;
} heddle__sampler;

struct heddle_generator {
  atomic_uint references;
  atomic_bool cancelled;
  heddle_model *model;
  heddle_executor *ex;
  heddle__generate_config config;
  heddle__generate_port ids, mask, positions;
  uint32_t logits; /* an output */
  heddle__generate_cache *caches;
  uint32_t n_caches;
  int64_t rows;       /* of each cache, where config.shares; 0: not made yet */
  int64_t fixed_rows; /* the graph says how many; 0: it does not */
  int64_t mask_ones;  /* leading ones in the mask's tensor */
  bool takes_padding; /* rows after a prompt's last one change nothing */
  bool exact_mask;    /* the mask has as many columns as there are tokens, where config.shares too */
  uint32_t vocabulary, max_length, chunk;
  int64_t *tokens;
  size_t n, room, cached;
  size_t pending;       /* tokens of a run that was not waited for; 0: none */
  int64_t pending_rows; /* with guesses or padding */
  uint32_t pending_ahead;
  heddle_tensor *view; /* the logits of the last run; NULL: not of token `cached` - 1 */
  int64_t view_row;
  heddle_generator *draft; /* NULL: there is none */
  uint32_t draft_tokens;
  const heddle_sampling *sampling; /* of the call that chooses a token; NULL: the call does not */
  int64_t guess[HEDDLE__GUESSES];
  uint32_t n_guess; /* for the next run */
  uint32_t ahead;   /* the first ones of guess, whose rows the caches have */
  heddle__sampler sampler;
  heddle_generator_stats stats;
};

/* generator.c: another generator of the model, without tokens. */
heddle_status heddle__generator_like(const heddle_generator *g, heddle_generator **out, heddle_error *err);

/* blame.c: puts the name of the weight that is no number before the error of a sampler, where there is one. */
void heddle__generate_blame(const heddle_generator *g, heddle_status s, heddle_error *err);

/* generator.c: HEDDLE_EINVAL where a token is not in the vocabulary. */
heddle_status heddle__generate_check_tokens(const heddle_generator *g, const int64_t *tokens, size_t n,
                                            heddle_error *err);

/* ports.c: finds the model's inputs, outputs and caches, and checks them against the configuration. state_rules: what
 * the model option state is to be, of heddle__alloc. */
heddle_status heddle__generate_state_rules(const heddle__generate_config *c, char **out, heddle_error *err);
heddle_status heddle__generate_ports(heddle_generator *g, heddle_error *err);

/* cache.c: rows for so many tokens, where caches are shared; the first n rows alone; and the first n tokens alone, without
 * what was computed ahead. */
heddle_status heddle__generate_reserve(heddle_generator *g, int64_t rows, heddle_error *err);
heddle_status heddle__generate_cut(heddle_generator *g, size_t n, heddle_error *err);
heddle_status heddle__generate_rewind(heddle_generator *g, size_t n, heddle_error *err);

/* speculate.c: the draft's guesses for the next run into g->guess; and which of these new tokens were computed ahead: they
 * become cached, and guesses behind them are dropped where others follow. */
heddle_status heddle__speculate_guess(heddle_generator *g, uint64_t until_ns, heddle_error *err);
heddle_status heddle__speculate_take(heddle_generator *g, const int64_t *tokens, size_t n, size_t *known,
                                     heddle_error *err);

/* loop.c: a caller's options, of any size, checked; and whether a token ends a text. */
heddle_status heddle__generation_take(const heddle_generation *given, heddle_generation *out, heddle_error *err);
bool heddle__generation_stops(const heddle__generate_config *c, const heddle_generation *o, int64_t token);

/* evaluate.c: the port's tensor of [rows, columns], which the executor reads; nothing where the model has no such input. The
 * old one stays where this fails. */
heddle_status heddle__port_widen(heddle__generate_port *port, heddle_executor *ex, int64_t rows, int64_t columns,
                                 heddle_error *err);

/* evaluate.c: after HEDDLE_OK the logits of the last token are in g->view. until_ns is on the monotonic clock. */
heddle_status heddle__generate_evaluate(heddle_generator *g, uint64_t until_ns, heddle_error *err);
heddle_status heddle__generate_settle(heddle_generator *g, uint64_t until_ns, heddle_error *err);
heddle_status heddle__generate_cancelled(heddle_generator *g, heddle_error *err);
uint64_t heddle__generate_until(uint64_t timeout_ns);
uint64_t heddle__generate_left(uint64_t until_ns);     /* a timeout */
void *heddle__generate_row(const heddle_generator *g); /* of g->view */

/* choose.c, nucleus.c and order.c: the choice. row: the logits, which are edited and restored where they are float32. */
heddle_status heddle__sampling_take(const heddle_sampling *given, uint32_t vocabulary, heddle_sampling *out,
                                    heddle_error *err);
heddle_status heddle__sampler_choose(heddle__sampler *m, void *row, heddle_dtype dtype, const int64_t *history,
                                     size_t n, uint64_t index, const heddle_sampling *s, int64_t *token,
                                     heddle_error *err);
void heddle__sampler_free(heddle__sampler *m);
heddle_status heddle__sampler_draw(heddle__sampler *m, const float *logits, const heddle_sampling *s, float best,
                                   double u, int64_t *token, heddle_error *err);

#endif
