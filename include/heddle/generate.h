/* heddle/generate.h: a generator makes tokens with a language model: it reads the configuration beside the model, keeps the
 * keys and values of earlier tokens as state values (state.h), runs the model and samples. docs/generate.md.
 *
 * A generator has a list of tokens. append and next add to it; what was added is computed when logits are needed, and only
 * once. Use a generator from one thread at a time; cancel, retain and release may be called from any thread. A call that
 * fails leaves the tokens and the caches whole: it may be repeated. Timeouts are nanoseconds, HEDDLE_FOREVER for none. */
#ifndef HEDDLE_GENERATE_H
#define HEDDLE_GENERATE_H

#include "heddle/state.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_generator heddle_generator;

/* Zeroed members have their default values; set struct_size to sizeof. Everything is copied. */
typedef struct heddle_generator_options {
  size_t struct_size;
  const heddle_model_options *model; /* devices, placement and the rest; NULL: as the context has them. Its member state
                                        must be NULL, in_flight at most 1 */
  uint32_t max_length;               /* tokens at most, the prompt's included; 0: as the configuration says */
  uint32_t chunk; /* tokens of a prompt that one run computes at most; 0: 256, or fewer where the logits are large */
} heddle_generator_options;

/* Opens a folder with genai_config.json (onnxruntime-genai) or config.json (Optimum) and the ONNX model that it names, or
 * the model itself, beside which they lie; or a GGUF file of llama.cpp (docs/gguf.md). *out has one reference. HEDDLE_EIO, HEDDLE_EFORMAT: a configuration cannot be
 * read. HEDDLE_EINVAL: configuration and graph contradict each other; the message names the tensor. HEDDLE_EUNSUPPORTED: the
 * graph has an input that is not known, or this build has no generators. Errors of heddle_model_load and
 * heddle_executor_create. Any thread; blocks in drivers. */
HEDDLE_API heddle_status heddle_generator_open(heddle_context *ctx, const char *path,
                                               const heddle_generator_options *options, heddle_generator **out,
                                               heddle_error *err);

/* Lets a smaller model guess: draft's model, in a generator of its own that g then owns, guesses so many tokens by the call's
 * sampling, and one run of g computes all of them. Tokens are chosen from g's logits as before, so they are those that come
 * without a draft, up to the rounding of runs with several rows; each that was guessed costs no run. Calls that choose no
 * token do not guess, and there are no guesses beyond draft's max_length. tokens: 1 to 16, 0 for 4. draft NULL: no more
 * guesses. g keeps the draft's model; draft itself stays the caller's. A fork has no draft. HEDDLE_EINVAL: the vocabularies
 * differ, or tokens is too large. g's next call is HEDDLE_EUNSUPPORTED where its graph gives the logits of a run's last token
 * alone. No other call may use g meanwhile, cancel included. */
HEDDLE_API heddle_status heddle_generator_speculate(heddle_generator *g, const heddle_generator *draft, uint32_t tokens,
                                                    heddle_error *err);

/* Retain adds a reference and returns g; release drops one and accepts NULL. */
HEDDLE_API heddle_generator *heddle_generator_retain(heddle_generator *g);
HEDDLE_API void heddle_generator_release(heddle_generator *g);

/* Creates a generator of the same model with the same tokens. Caches are shared until either computes: several answers
 * to one prompt, or prompts with one beginning, cost it once. What was appended is computed first, without a time limit.
 * *out has one reference. Errors of heddle_generator_evaluate and heddle_executor_create. */
HEDDLE_API heddle_status heddle_generator_fork(heddle_generator *g, heddle_generator **out, heddle_error *err);

/* Pointers are borrowed from the generator. Set out->struct_size first. */
typedef struct heddle_generator_info {
  size_t struct_size;
  const char *type;       /* as the configuration has it ("qwen2"), or "" */
  const char *model_path; /* the ONNX file */
  heddle_model *model;
  const int64_t *stop_tokens; /* eos_token_id of the configuration */
  uint32_t n_stop_tokens;
  uint32_t vocabulary;
  uint32_t max_length;
  uint32_t layers;    /* with a cache each */
  int64_t bos_token;  /* -1: none */
  int64_t cache_rows; /* rows of a cache now */
  uint64_t cache_bytes;
} heddle_generator_info;
HEDDLE_API heddle_status heddle_generator_get_info(heddle_generator *g, heddle_generator_info *out, heddle_error *err);

/* Adds tokens. Nothing is computed yet. HEDDLE_EINVAL: a token is negative or not in the vocabulary. HEDDLE_ELIMIT: there
 * would be more than max_length tokens. In both cases none is added. */
HEDDLE_API heddle_status heddle_generator_append(heddle_generator *g, const int64_t *tokens, size_t n,
                                                 heddle_error *err);

/* The tokens, borrowed until the list changes. */
HEDDLE_API const int64_t *heddle_generator_tokens(const heddle_generator *g, size_t *n);

/* Keeps the first n tokens and what was computed for them. A cancel that no call has reported is dropped.
 * HEDDLE_EINVAL: there are fewer. */
HEDDLE_API heddle_status heddle_generator_truncate(heddle_generator *g, size_t n, heddle_error *err);

/* Computes what was appended. HEDDLE_EINVAL: there is no token. HEDDLE_ETIMEOUT, HEDDLE_ECANCELED; errors of a run. */
HEDDLE_API heddle_status heddle_generator_evaluate(heddle_generator *g, uint64_t timeout_ns, heddle_error *err);

/* The logits of the next token, [vocabulary], float32, a copy with one reference. Evaluates first. */
HEDDLE_API heddle_status heddle_generator_logits(heddle_generator *g, uint64_t timeout_ns, heddle_tensor **out,
                                                 heddle_error *err);

/* How a token is chosen. Zeroed members change nothing: the token with the greatest logit is chosen, the first of equal
 * ones. Else, in this order: biases are added; logits of tokens that are in the list are divided by repetition_penalty, or
 * multiplied where negative; with a temperature, logits are divided by it, and a token is drawn among the top_k greatest, of
 * these among the fewest whose probabilities sum to top_p, and of these among those with at least min_p times the
 * greatest probability. The draw depends on seed and the token's position in the list only. */
typedef struct heddle_sampling {
  size_t struct_size;
  double temperature; /* 0: greedy */
  double top_p;       /* 0 or 1: all */
  double min_p;
  double repetition_penalty; /* 0 or 1: none */
  uint64_t seed;
  uint32_t top_k; /* 0: all */
  uint32_t n_biases;
  const int64_t *bias_tokens;
  const float *biases; /* -INFINITY forbids a token */
} heddle_sampling;

/* Chooses a token by logits of the caller: a float32, float16 or bfloat16 row-major tensor on the host whose last row is
 * used. index is the position for the draw. HEDDLE_EINVAL: a bad option or tensor, or no logit is above -INFINITY; a NaN is
 * as -INFINITY. Any thread. */
HEDDLE_API heddle_status heddle_sample(const heddle_tensor *logits, const int64_t *history, size_t n, uint64_t index,
                                       const heddle_sampling *sampling, int64_t *token, heddle_error *err);

/* Evaluates, chooses a token, and adds it. sampling may be NULL. HEDDLE_ELIMIT: there are max_length tokens. */
HEDDLE_API heddle_status heddle_generator_next(heddle_generator *g, const heddle_sampling *sampling,
                                               uint64_t timeout_ns, int64_t *token, heddle_error *err);

/* Called for each token that is no stop token, on the thread of the call. Not 0: no more tokens. It may not use the
 * generator, but for cancel. */
typedef int (*heddle_token_fn)(void *user, int64_t token);

#define HEDDLE_GENERATE_PAST_STOPS UINT32_C(1) /* the configuration's stop tokens are like others */

/* Zeroed members have their default values; set struct_size to sizeof. */
typedef struct heddle_generation {
  size_t struct_size;
  const heddle_sampling *sampling; /* NULL: greedy */
  const int64_t *stop_tokens;      /* besides the configuration's */
  size_t n_stop_tokens;
  uint64_t max_tokens;  /* 0: as many as fit */
  uint64_t deadline_ns; /* after the call; 0: none */
  heddle_token_fn token;
  void *user;
  uint32_t flags; /* HEDDLE_GENERATE_ */
  uint32_t reserved;
} heddle_generation;

typedef enum heddle_generation_end {
  HEDDLE_GENERATION_STOP,    /* a stop token, which is the last in the list */
  HEDDLE_GENERATION_LENGTH,  /* max_tokens or max_length */
  HEDDLE_GENERATION_CALLBACK /* the callback ended it */
} heddle_generation_end;

typedef struct heddle_generated {
  size_t struct_size;
  uint64_t tokens;   /* added, a stop token included */
  uint64_t first_ns; /* from the call to the first of them */
  uint64_t rest_ns;  /* from then to the last */
  uint32_t end;      /* heddle_generation_end */
  uint32_t reserved;
} heddle_generated;

/* Adds tokens until one stops it. options and out may be NULL. Where it fails, the tokens up to then stay, and out is
 * filled. Errors of heddle_generator_next; HEDDLE_ETIMEOUT after the deadline. */
HEDDLE_API heddle_status heddle_generator_generate(heddle_generator *g, const heddle_generation *options,
                                                   heddle_generated *out, heddle_error *err);

/* Ends the call of this generator that computes, or else the next one that would, with HEDDLE_ECANCELED. Any thread; does
 * not block. */
HEDDLE_API void heddle_generator_cancel(heddle_generator *g);

/* Counters since the generator was opened. The time of the loop itself is all_ns - run_ns - sample_ns - guess_ns. */
typedef struct heddle_generator_stats {
  size_t struct_size;
  uint64_t runs;
  uint64_t computed; /* tokens that runs computed */
  uint64_t sampled;
  uint64_t all_ns; /* in evaluate, logits and next */
  uint64_t run_ns;
  uint64_t sample_ns;
  uint64_t guessed;  /* by the draft */
  uint64_t accepted; /* of those */
  uint64_t guess_ns; /* in runs of the draft */
} heddle_generator_stats;
HEDDLE_API heddle_status heddle_generator_get_stats(heddle_generator *g, heddle_generator_stats *out,
                                                    heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
