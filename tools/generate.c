/* tools/generate.c: heddle generate: tokens of a language model. Texts are the Python package's, which has tokenizers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "python.h"
#include "session.h"
#include "text.h"

static const option known[] = {
    {"tokens", OPTION_WORDS, "FILE.npy", offsetof(options, tokens),
     "the prompt's tokens, whole numbers; given again: another text"},
    {"rows", OPTION_POSITIVE, "N", offsetof(options, rows), "with several texts: so many in one run, 8 by default"},
    {"prompt", OPTION_TEXT, "TEXT", offsetof(options, prompt),
     "the prompt, by the folder's tokenizer.json (Python package, heddle[generate])"},
    {"max-tokens", OPTION_POSITIVE, "N", offsetof(options, max_tokens), "new tokens at most, 128 by default"},
    {"max-length", OPTION_POSITIVE, "N", offsetof(options, max_length),
     "tokens at most with the prompt's, for which caches have room; as the model's configuration says by default"},
    {"chunk", OPTION_POSITIVE, "N", offsetof(options, chunk), "tokens of the prompt in one run at most"},
    {"temperature", OPTION_NUMBER, "X", offsetof(options, temperature), "draws tokens; 0, the default, takes the best"},
    {"top-k", OPTION_COUNT, "N", offsetof(options, top_k), "draws among the N best"},
    {"top-p", OPTION_NUMBER, "X", offsetof(options, top_p), "draws among the fewest whose probabilities sum to X"},
    {"min-p", OPTION_NUMBER, "X", offsetof(options, min_p),
     "draws among those with X times the best one's probability"},
    {"repetition-penalty", OPTION_NUMBER, "X", offsetof(options, repetition_penalty),
     "makes tokens that were there less probable"},
    {"seed", OPTION_COUNT, "N", offsetof(options, seed), "of the draws; one seed gives one text"},
    {"logit-bias", OPTION_WORDS, "TOKEN=X", offsetof(options, biases),
     "is added to the logit of a token, by its number; -inf forbids it"},
    {"draft", OPTION_TEXT, "MODEL", offsetof(options, draft),
     "a smaller model that guesses tokens; the text stays as it is"},
    {"draft-device", OPTION_TEXT, "LIST", offsetof(options, draft_devices),
     "devices of the draft, by default as --device"},
    {"draft-tokens", OPTION_POSITIVE, "N", offsetof(options, draft_tokens),
     "tokens that it guesses at a time, 4 by default"},
    {"stop-token", OPTION_WORDS, "N", offsetof(options, stop_tokens), "ends the text, besides the configuration's"},
    {"stop", OPTION_WORDS, "TEXT", offsetof(options, stops), "with --prompt: ends the text, too"},
    {"past-stops", OPTION_FLAG, NULL, offsetof(options, past_stops), "goes on after the configuration's stop tokens"},
    {"timeout", OPTION_NUMBER, "S", offsetof(options, timeout), "gives up after S seconds"},
    {"json", OPTION_FLAG, NULL, offsetof(options, json), "prints one JSON object"},
    OPTION_DEVICE,
    OPTION_PLACE,
    OPTION_MEMORY,
    OPTION_OPTIMIZE,
    OPTION_PRECISION,
    OPTION_ON_FAILURE,
    {"threads", OPTION_COUNT, "N", offsetof(options, threads), "threads for devices that compute on the host"},
    OPTION_SET,
    OPTION_TRUST,
    OPTION_KEY,
    OPTION_HELP,
    OPTION_END};

static const char code[] = "import sys\n"
                           "try:\n"
                           "    from heddle.generating import main\n"
                           "except ImportError as error:\n"
                           "    sys.exit('heddle: --prompt needs the Python package heddle, which ' + sys.executable + "
                           "' does not find (HEDDLE_PYTHON names another Python): ' + str(error))\n"
                           "main()\n";

/* What is printed and counted. */
typedef struct output {
  bool json;
  int64_t *tokens; /* of malloc */
  size_t n, room;
  bool failed;
} output;

static int take_token(void *user, int64_t token) {
  output *out = user;
  if (!out->json) {
    print("%s%" PRId64, out->n > 0 ? " " : "", token);
    fflush(stdout);
  }
  if (out->n == out->room) {
    const size_t room = out->room > 0 ? 2 * out->room : 256;
    int64_t *grown = realloc(out->tokens, room * sizeof *grown);
    if (grown == NULL) {
      out->failed = true;
      return 1;
    }
    out->tokens = grown;
    out->room = room;
  }
  out->tokens[out->n++] = token;
  return 0;
}

/* ---- what is given */

/* Whether all tokens are of one text: at most one dimension has more than one. */
static bool is_one_row(const heddle_tensor *t) {
  uint32_t rows = 0;
  for (uint32_t d = 0; d < heddle_tensor_ndim(t); d++) rows += heddle_tensor_shape(t)[d] != 1;
  return rows <= 1;
}

/* The tokens of a file; *out is freed by the caller. */
int generate_read_tokens(const char *path, int64_t **out, size_t *n) {
  heddle_tensor *t = NULL;
  heddle_error err = {0};
  if (heddle_tensor_load_npy(path, &t, &err) != HEDDLE_OK) return fail("generate", &err);
  const heddle_dtype d = heddle_tensor_dtype(t);
  const bool good = d.lanes == 1 && (d.code == HEDDLE_DTYPE_INT || d.code == HEDDLE_DTYPE_UINT) &&
                    (d.bits == 64 || d.bits == 32) && heddle_tensor_is_contiguous(t);
  int status = DONE;
  *n = good ? (size_t)(heddle_tensor_bytes(t) / (d.bits / 8U)) : 0;
  *out = calloc(*n + 1, sizeof **out);
  if (!good) status = fail_text("generate", "%s: expected tokens as int64 or int32", path);
  else if (!is_one_row(t))
    status = fail_text("generate", "%s: expected the tokens of one text, and it has several rows", path);
  else if (*n == 0) status = fail_text("generate", "%s: it has no tokens", path);
  else if (*out == NULL) status = fail_text("generate", "out of memory");
  const void *data = heddle_tensor_data(t);
  for (size_t i = 0; status == DONE && i < *n; i++)
    (*out)[i] = d.bits == 64                  ? ((const int64_t *)data)[i]
                : d.code == HEDDLE_DTYPE_UINT ? (int64_t)((const uint32_t *)data)[i]
                                              : ((const int32_t *)data)[i];
  heddle_tensor_release(t);
  return status;
}

/* TOKEN=X of each word, as sampling has them; both arrays are freed by the caller. */
static int read_biases(const words *given, heddle_sampling *out, int64_t **tokens, float **values) {
  *tokens = calloc(given->count + 1, sizeof **tokens);
  *values = calloc(given->count + 1, sizeof **values);
  if (*tokens == NULL || *values == NULL) return fail_text("generate", "out of memory");
  for (size_t i = 0; i < given->count; i++) {
    char *end, *last = NULL;
    const long long token = strtoll(given->data[i], &end, 10);
    const float value = *end == '=' ? strtof(end + 1, &last) : 0;
    if (end == given->data[i] || *end != '=' || last == end + 1 || *last != '\0' || token < 0) {
      print_error("heddle generate: --logit-bias needs TOKEN=X, such as 17=-2.5, not '%s'\n", given->data[i]);
      return WRONG_WORDS;
    }
    (*tokens)[i] = token;
    (*values)[i] = value;
  }
  out->n_biases = (uint32_t)given->count;
  out->bias_tokens = *tokens;
  out->biases = *values;
  return DONE;
}

static int read_stops(const words *given, int64_t **out) {
  *out = calloc(given->count + 1, sizeof **out);
  if (*out == NULL) return fail_text("generate", "out of memory");
  for (size_t i = 0; i < given->count; i++) {
    char *end;
    const long long token = strtoll(given->data[i], &end, 10);
    if (end == given->data[i] || *end != '\0' || token < 0) {
      print_error("heddle generate: --stop-token needs a token's number, not '%s'\n", given->data[i]);
      return WRONG_WORDS;
    }
    (*out)[i] = token;
  }
  return DONE;
}

static int check_words(const options *o) {
  if ((o->tokens.count > 0) == (o->prompt != NULL)) {
    print_error("heddle generate: give the prompt with --tokens FILE.npy or with --prompt TEXT\n");
    return WRONG_WORDS;
  }
  if (o->tokens.count > 0 && o->stops.count > 0) {
    print_error("heddle generate: --stop is for --prompt; --stop-token N stops at a token\n");
    return WRONG_WORDS;
  }
  if (o->max_length > UINT32_MAX || o->chunk > UINT32_MAX || o->top_k > UINT32_MAX || o->draft_tokens > UINT32_MAX) {
    print_error("heddle generate: --max-length, --chunk, --top-k and --draft-tokens are less than 2^32\n");
    return WRONG_WORDS;
  }
  if (o->draft == NULL && (o->draft_devices != NULL || o->draft_tokens > 0)) {
    print_error("heddle generate: --draft-device and --draft-tokens are for --draft\n");
    return WRONG_WORDS;
  }
  if (o->rows > 1024) {
    print_error("heddle generate: --rows is at most 1024\n");
    return WRONG_WORDS;
  }
  if (o->tokens.count < 2 ? o->rows > 0 : o->draft != NULL) {
    print_error("heddle generate: --rows is for several --tokens, and --draft for one\n");
    return WRONG_WORDS;
  }
  return DONE;
}

/* ---- with a text */

static void add_number(python_words *l, const char *name, double value, char room[32]) {
  if (value == 0) return;
  snprintf(room, 32, "%.17g", value);
  python_add(l, name, room);
}

static int generate_text(const options *o) {
  python_words l = {.n = 0};
  char text[12][32];
  l.words[l.n++] = o->model;
  python_add(&l, "--prompt", o->prompt);
  python_add(&l, "--device", o->devices);
  python_add(&l, "--memory", o->memory);
  python_add(&l, "--optimize", o->optimize);
  python_add(&l, "--precision", o->precision);
  python_add(&l, "--on-failure", o->on_failure);
  python_add(&l, "--draft", o->draft);
  python_add(&l, "--draft-device", o->draft_devices);
  python_add_all(&l, "--place", &o->place);
  python_add_all(&l, "--set", &o->settings);
  python_add_all(&l, "--stop", &o->stops);
  python_add_all(&l, "--stop-token", &o->stop_tokens);
  python_add_all(&l, "--logit-bias", &o->biases);
  const struct {
    const char *name;
    uint64_t value;
  } counts[] = {{"--max-tokens", o->max_tokens},
                {"--max-length", o->max_length},
                {"--chunk", o->chunk},
                {"--top-k", o->top_k},
                {"--seed", o->seed},
                {"--threads", o->threads},
                {"--draft-tokens", o->draft_tokens}};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    if (counts[i].value == 0) continue;
    snprintf(text[i], sizeof text[i], "%" PRIu64, counts[i].value);
    python_add(&l, counts[i].name, text[i]);
  }
  add_number(&l, "--temperature", o->temperature, text[7]);
  add_number(&l, "--top-p", o->top_p, text[8]);
  add_number(&l, "--min-p", o->min_p, text[9]);
  add_number(&l, "--repetition-penalty", o->repetition_penalty, text[10]);
  add_number(&l, "--timeout", o->timeout, text[11]);
  if (o->past_stops) l.words[l.n++] = "--past-stops";
  if (o->json) l.words[l.n++] = "--json";
  return python_exec("generate", "--prompt", code, &l);
}

/* ---- with tokens */

static double rate_of(const heddle_generated *done) {
  return done->tokens > 1 && done->rest_ns > 0 ? (double)(done->tokens - 1) / ((double)done->rest_ns * 1e-9) : 0;
}

const char *generate_end(const heddle_generated *done) {
  return done->end == HEDDLE_GENERATION_STOP ? "stop" : done->end == HEDDLE_GENERATION_LENGTH ? "length" : "callback";
}

static int report(const output *out, size_t prompt, const heddle_generated *done, const heddle_generator_stats *stats) {
  const double first_ms = (double)done->first_ns * 1e-6;
  const double loop_us =
      stats->sampled > 0
          ? (double)(stats->all_ns - stats->run_ns - stats->sample_ns - stats->guess_ns) * 1e-3 / (double)stats->sampled
          : 0;
  const double sample_us = stats->sampled > 0 ? (double)stats->sample_ns * 1e-3 / (double)stats->sampled : 0;
  if (!out->json) {
    if (out->n > 0) print("\n");
    print("%" PRIu64 " tokens after a prompt of %zu (%s); the first after %.1f ms, then %.1f a second\n", done->tokens,
          prompt, generate_end(done), first_ms, rate_of(done));
    if (stats->guessed > 0)
      print("%" PRIu64 " of %" PRIu64 " guesses of the draft were taken\n", stats->accepted, stats->guessed);
    return DONE;
  }
  json_t *tokens = json_array();
  for (size_t i = 0; i < out->n; i++) json_array_append_new(tokens, json_integer(out->tokens[i]));
  return print_json("generate", json_pack("{s:o, s:I, s:I, s:s, s:f, s:f, s:f, s:f, s:I, s:I}", "tokens", tokens,
                                          "prompt_tokens", (json_int_t)prompt, "new_tokens", (json_int_t)done->tokens,
                                          "end", generate_end(done), "first_token_ms", first_ms, "tokens_per_second",
                                          rate_of(done), "loop_us", loop_us, "sample_us", sample_us, "guessed",
                                          (json_int_t)stats->guessed, "accepted", (json_int_t)stats->accepted));
}

/* What all texts have; token and user are the caller's. */
static heddle_generation generation_of(const options *o, const int64_t *stops, const heddle_sampling *sampling) {
  return (heddle_generation){.struct_size = sizeof(heddle_generation),
                             .sampling = sampling,
                             .stop_tokens = stops,
                             .n_stop_tokens = o->stop_tokens.count,
                             .max_tokens = o->max_tokens > 0 ? o->max_tokens : 128,
                             .deadline_ns = o->timeout > 0 ? (uint64_t)(o->timeout * 1e9) + 1 : 0,
                             .flags = o->past_stops ? HEDDLE_GENERATE_PAST_STOPS : 0};
}

static int generate(const options *o, heddle_generator *g, const int64_t *tokens, size_t n, heddle_generation *how) {
  heddle_error err = {0};
  output out = {.json = o->json};
  how->token = take_token;
  how->user = &out;
  heddle_generated done = {.struct_size = sizeof done};
  heddle_generator_stats stats = {.struct_size = sizeof stats};
  int status = DONE;
  if (heddle_generator_append(g, tokens, n, &err) != HEDDLE_OK) {
    status = fail_text("generate", "%s: %s", o->tokens.data[0], err.text);
  } else if (heddle_generator_generate(g, how, &done, &err) != HEDDLE_OK) {
    if (!out.json && out.n > 0) print("\n");
    status = fail("generate", &err);
  } else if (out.failed) {
    status = fail_text("generate", "out of memory");
  } else {
    heddle_generator_get_stats(g, &stats, NULL);
    status = report(&out, n, &done, &stats);
  }
  free(out.tokens);
  return status;
}

static int open_generator(const options *o, const session *s, const char *path, const heddle_model_options *mo,
                          heddle_generator **out) {
  heddle_error err = {0};
  const heddle_generator_options options = {
      .struct_size = sizeof options, .model = mo, .max_length = (uint32_t)o->max_length, .chunk = (uint32_t)o->chunk};
  return heddle_generator_open(s->ctx, path, &options, out, &err) == HEDDLE_OK ? DONE : fail("generate", &err);
}

/* Rules and limits are the model's own. */
static int open_draft(const options *o, const session *s, const heddle_model_options *mo, heddle_generator *g) {
  heddle_model_options of_draft = *mo;
  heddle_generator *draft = NULL;
  heddle_error err = {0};
  if (o->draft == NULL) return DONE;
  if (o->draft_devices != NULL) of_draft.devices = o->draft_devices;
  of_draft.place = NULL;
  of_draft.n_place = 0;
  of_draft.memory = NULL;
  int status = open_generator(o, s, o->draft, &of_draft, &draft);
  if (status == DONE && heddle_generator_speculate(g, draft, (uint32_t)o->draft_tokens, &err) != HEDDLE_OK)
    status = fail("generate", &err);
  heddle_generator_release(draft);
  return status;
}

static int generate_tokens(const options *o) {
  session s;
  heddle_model_options mo;
  heddle_generator *g = NULL;
  heddle_sampling sampling = {.struct_size = sizeof sampling,
                              .temperature = o->temperature,
                              .top_p = o->top_p,
                              .min_p = o->min_p,
                              .repetition_penalty = o->repetition_penalty,
                              .seed = o->seed,
                              .top_k = (uint32_t)o->top_k};
  int64_t *tokens = NULL, *stops = NULL, *biased = NULL;
  float *biases = NULL;
  size_t n = 0;
  int status = read_stops(&o->stop_tokens, &stops);
  if (status == DONE) status = read_biases(&o->biases, &sampling, &biased, &biases);
  if (status == DONE) status = generate_read_tokens(o->tokens.data[0], &tokens, &n);
  heddle_generation how = generation_of(o, stops, &sampling);
  const bool has_session = status == DONE;
  if (status == DONE) status = session_context(&s, "generate", o);
  if (status == DONE) status = session_model_options(&s, &mo);
  if (status == DONE) status = open_generator(o, &s, o->model, &mo, &g);
  if (status == DONE) status = open_draft(o, &s, &mo, g);
  if (status == DONE) status = o->tokens.count > 1 ? generate_texts(o, g, &how) : generate(o, g, tokens, n, &how);
  heddle_generator_release(g);
  free(tokens);
  free(stops);
  free(biased);
  free(biases);
  return has_session ? session_finish(&s, status) : status;
}

static int run_generate(const options *o) {
  const int status = check_words(o);
  if (status != DONE) return status;
  return o->prompt != NULL ? generate_text(o) : generate_tokens(o);
}

static const char description[] =
    "MODEL is a folder with genai_config.json (onnxruntime-genai) or config.json (Optimum) and the ONNX model, that\n"
    "model, or a .gguf file. Prints each token, or the text, as it comes, then the time to the first one and how many "
    "a\n"
    "second follow.\n";

const command generate_command = {"generate",  "makes tokens with a language model", description, known, SUBJECT_MODEL,
                                  run_generate};
