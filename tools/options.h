/* tools/options.h: the words of a command line, and the commands that take them.
 * Each command has a table of the options it knows; one parser reads them all and writes their help. */
#ifndef HEDDLE_TOOLS_OPTIONS_H
#define HEDDLE_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses of the tool. */
enum { DONE = 0, FAILED = 1, WRONG_WORDS = 2 };

#define NO_NUMBER UINT64_MAX

/* Words given several times, in order; borrowed from argv. */
typedef struct words {
  const char **data;
  size_t count;
} words;

/* What all commands' options are kept in; a member that was not given has its default. */
typedef struct options {
  const char *model;
  const char *params;
  const char *lib;
  const char *model_name;
  const char *devices;
  const char *svg;
  const char *output_dir;
  const char *trace;
  const char *profile_json;
  const char *debug_dir;
  const char *func;
  const char *timer;
  const char *output;
  const char *optimize;
  const char *precision;
  const char *memory;
  const char *unsupported, *expected, *format, *store, *junit, *report;
  const char *on_failure;
  const char *state, *load_state, *save_state;
  const char *a, *b; /* devices of the two sides of compare */
  const char *against;
  const char *trust, *key, *sign, *encrypt;
  const char *host, *port_range, *tracker, *proxy, *rpc_key, *address; /* of the RPC server and tracker */
  const char *listen, *unix_path, *tls_cert, *tls_key, *tls_ca, *psk, *key_name, *tls_name,
      *tunnel_to;                             /* of the device server */
  const char *prompt, *draft, *draft_devices; /* of generate */
  words tokens, stop_tokens, stops, biases;
  words place_a, place_b;
  words settings_a, settings_b;
  words place;                                     /* PATTERN=DEVICE, or auto */
  words inputs;                                    /* NAME=FILE.npy */
  words settings;                                  /* KEY=VALUE */
  words dims;                                      /* NAME=NUMBER */
  words only;                                      /* patterns of cases */
  words models, names, libs, param_files, targets; /* of what is packed; model is the first */
  uint64_t threads;                                /* 0: as configured */
  uint64_t in_flight;
  uint64_t programs, sequence, seed;
  uint64_t jobs; /* NO_NUMBER: not given */
  uint64_t repeat, number, zero_limit, repeats_to_cooldown;
  uint64_t profile_runs;                                                  /* NO_NUMBER: not given */
  uint64_t port, sessions, session_memory, packet_limit, session_timeout; /* of the servers; sizes in MiB */
  uint64_t idle_timeout;                                                  /* in seconds */
  uint64_t max_tokens, max_length, chunk, top_k, draft_tokens, rows;      /* of generate */
  double temperature, top_p, min_p, repetition_penalty;
  double timeout; /* seconds; 0: none */
  double min_repeat_ms, cooldown_ms;
  bool json, all, retry, described, profile, random, end_to_end, quick, list, no_store, no_params, detached, new_cipher,
      help;
  bool ignore_annotations; /* of the model's nodes */
  bool insecure_tvm_rpc, stdio, allow_libraries, tvm_rpc;
  bool past_stops;
  const char *weights, *form; /* of what is quantised */
  words keep;
  uint64_t block, accuracy_level;
  bool symmetric;
} options;

typedef enum option_kind {
  OPTION_FLAG,
  OPTION_TEXT,
  OPTION_WORDS, /* any text, several times */
  OPTION_PAIRS,
  OPTION_RULES, /* pairs, auto or off */
  OPTION_COUNT,
  OPTION_POSITIVE, /* a count that is not 0 */
  OPTION_NUMBER
} option_kind;

/* One option of a command. value is what --help calls its argument; offset is its member of options. */
typedef struct option {
  const char *name;
  option_kind kind;
  const char *value;
  size_t offset;
  const char *help;
} option;

/* The word, or the words, that a command takes besides its options. */
typedef enum subject {
  SUBJECT_NONE = false,
  SUBJECT_MODEL = true,
  SUBJECT_PLUGIN,
  SUBJECT_MODELS,
  SUBJECT_FILE,
  SUBJECT_WORDS
} subject;

typedef struct command {
  const char *name;
  const char *summary;     /* one line for the list of commands */
  const char *description; /* more, for its own help; may hold newlines */
  const option *known;     /* ends with a name of NULL */
  subject takes;           /* or true, for a model */
  int (*run)(const options *o);
} command;

/* All of them, in the order of the help; the last is NULL. */
extern const command *const all_commands[];

extern const command devices_command, info_command, plan_command, run_command, bench_command, compare_command,
    convert_command, generate_command, pack_command, unpack_command, link_command, key_command, sign_command,
    verify_command, decrypt_command, check_plugin_command, rpc_server_command, rpc_tracker_command, rpc_proxy_command,
    device_server_command, keys_command, rpc_tunnel_command, quantize_command;

/* Options that several commands share. */
#define OPTION_SET \
  { "set", OPTION_PAIRS, "KEY=VALUE", offsetof(options, settings), "a setting, such as sim.delay_us=5" }
#define OPTION_DEVICE \
  { "device", OPTION_TEXT, "LIST", offsetof(options, devices), "devices in order of preference, such as cpu,sim:1" }
#define OPTION_PLACE \
  { \
    "place", OPTION_RULES, "PATTERN=DEVICE", offsetof(options, place), \
        "nodes whose names match go there, the last rule wins; auto: the others go where a run is shortest" \
  }
#define OPTION_ANNOTATIONS \
  { \
    "ignore-annotations", OPTION_FLAG, NULL, offsetof(options, ignore_annotations), \
        "leave aside the devices that the model's nodes name" \
  }
#define OPTION_PARAMS \
  { "params", OPTION_TEXT, "FILE", offsetof(options, params), "parameters; MODEL's .params beside it by default" }
#define OPTION_LIB \
  { "lib", OPTION_TEXT, "FILE", offsetof(options, lib), "the compiled library whose functions a TVM graph calls" }
#define OPTION_MODEL_NAME \
  { "model", OPTION_TEXT, "NAME", offsetof(options, model_name), "which of the models that a library holds" }
#define OPTION_OPTIMIZE \
  { \
    "optimize", OPTION_TEXT, "LIST", offsetof(options, optimize), \
        "on, off, or which optimisations rewrite the graph, such as fold,cse or -gemm" \
  }
#define OPTION_MEMORY \
  { \
    "memory", OPTION_TEXT, "LIST", offsetof(options, memory), \
        "limits on devices' memory, such as cuda:0=2GiB,sim:0=64MiB" \
  }
#define OPTION_ON_FAILURE \
  { \
    "on-failure", OPTION_TEXT, "WORD", offsetof(options, on_failure), \
        "what becomes of a run that a device failed: error, retry, retry:N or failover" \
  }
#define OPTION_STATE \
  { \
    "state", OPTION_TEXT, "RULES", offsetof(options, state), \
        "outputs that are inputs of the next run, such as past*:present*; auto: by the names that exporters use" \
  }
#define OPTION_SEED \
  { "seed", OPTION_COUNT, "N", offsetof(options, seed), "the seed of random operators that have none of their own" }
#define OPTION_PRECISION \
  { \
    "precision", OPTION_TEXT, "WORD", offsetof(options, precision), \
        "strict: float32 is float32; fast: it may be computed in bfloat16 where the device does that faster" \
  }
#define OPTION_TRUST \
  { \
    "trust", OPTION_TEXT, "FILE", offsetof(options, trust), \
        "the trust file whose keys must have signed every file that is loaded" \
  }
#define OPTION_KEY \
  { "key", OPTION_TEXT, "FILE", offsetof(options, key), "the key of encrypted files" }
#define OPTION_SEQUENCE \
  { "sequence", OPTION_COUNT, "N", offsetof(options, sequence), "a number that is signed too, larger in each release" }
#define OPTION_INPUT \
  { "input", OPTION_PAIRS, "NAME=FILE.npy", offsetof(options, inputs), "the value of an input" }
#define OPTION_DIM \
  { "dim", OPTION_PAIRS, "NAME=NUMBER", offsetof(options, dims), "a number for a dimension that the model names" }
#define OPTION_IN_FLIGHT(help) \
  { "in-flight", OPTION_COUNT, "N", offsetof(options, in_flight), help }
#define OPTION_PROGRAMS \
  { \
    "programs", OPTION_COUNT, "N", offsetof(options, programs), \
        "how many programs the model keeps, one for each set of shapes; 8 by default" \
  }
#define OPTION_HELP \
  { "help", OPTION_FLAG, NULL, offsetof(options, help), "prints this" }
#define OPTION_END \
  { NULL, OPTION_FLAG, NULL, 0, NULL }

/* What run, bench and plan share: where nodes run and how; and what run and bench share besides: the model and its inputs. */
#define OPTIONS_OF_PLANS \
  OPTION_DEVICE, OPTION_PLACE, OPTION_ANNOTATIONS, OPTION_OPTIMIZE, OPTION_MEMORY, OPTION_ON_FAILURE, OPTION_STATE, \
      OPTION_SEED, OPTION_PRECISION
#define OPTIONS_OF_RUNS OPTION_PARAMS, OPTION_LIB, OPTION_MODEL_NAME, OPTIONS_OF_PLANS, OPTION_INPUT, OPTION_DIM

/* Reads the words after the command's name. Says what is wrong on stderr and gives WRONG_WORDS; FAILED where memory is
 * out. out is finished with options_finish in any case. */
int options_parse(const command *c, int argc, char **argv, options *out);

/* The option of a command with the name of that many bytes; NULL: it has none. */
const option *options_find(const command *c, const char *name, size_t length);
void options_finish(const command *c, options *o);

/* Prints how a command is used. */
void options_help(const command *c);

#endif
