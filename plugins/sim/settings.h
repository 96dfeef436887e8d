/* The settings of sim: read once for an instance through heddle_host.config, and overridden for one device by the
 * settings that it is opened with. docs/sim.md lists them for users. */
#ifndef HEDDLE_PLUGINS_SIM_SETTINGS_H
#define HEDDLE_PLUGINS_SIM_SETTINGS_H

#include "heddle/plugin.h"

#include <stdbool.h>

#define SIM_MAX_DEVICES 16
#define SIM_MAX_RULES 16
#define SIM_MAX_SPEEDS 16

/* X(NAME, word): every kind of call that "fail" can name. */
#define SIM_CALL_LIST(X) \
  X(OPEN, "open") \
  X(ALLOC, "alloc") \
  X(VIEW, "view") \
  X(IMPORT, "import") \
  X(MAP, "map") \
  X(FLUSH, "flush") \
  X(H2D, "h2d") \
  X(D2H, "d2h") \
  X(D2D, "d2d") \
  X(FILL, "fill") \
  X(PEER, "peer") \
  X(STREAM, "stream") \
  X(SUBMIT, "submit") \
  X(SYNC, "sync") \
  X(EVENT, "event") \
  X(RECORD, "record") \
  X(WAIT, "wait") \
  X(SIGNAL, "signal") \
  X(QUERY, "query") \
  X(PREPARE, "prepare") \
  X(BIND, "bind") \
  X(RUN, "run") \
  X(PACK, "pack") \
  X(LOAD, "load") \
  X(KERNEL, "kernel") \
  X(LAUNCH, "launch") \
  X(BEGIN, "begin") \
  X(END, "end") \
  X(REPLAY, "replay") \
  X(TIMER, "timer") \
  X(MARK, "mark") \
  X(EXTERNAL, "external")

typedef enum sim_call {
#define SIM_CALL_ENUM(name, word) SIM_CALL_##name,
  SIM_CALL_LIST(SIM_CALL_ENUM)
#undef SIM_CALL_ENUM
      SIM_CALL_COUNT
} sim_call;

/* One injected failure: the n-th call of a kind. */
typedef struct sim_rule {
  sim_call call;
  int32_t device; /* -1: calls on all devices are counted together */
  uint64_t n;     /* from 1 */
  bool async;     /* the command fails when the stream gets to it, not the call */
  bool fault;     /* the device is lost with it */
} sim_rule;

/* What is there, is not, or is and does not tell the truth. */
typedef enum sim_mode { SIM_OFF, SIM_ON, SIM_LIE } sim_mode;

/* How long an operator keeps its device busy; of all others where op is "". */
typedef struct sim_speed {
  char op[40];
  uint64_t us;
} sim_speed;

typedef struct sim_settings {
  uint64_t devices;
  uint64_t seed;
  uint64_t delay_us;
  uint64_t max_buffer_bytes;
  uint64_t memory_bytes;
  uint64_t import_alignment;
  uint64_t launch_bytes;
  uint64_t hang;
  sim_mode peer;
  sim_mode copy;
  sim_mode import_unified;
  bool coherent;
  bool unified;
  bool import;
  bool views;
  bool capture;
  bool layouts;
  bool fuse;
  bool bare;
  bool needs_open;
  bool fence_wait;
  bool wait_before_signal;
  bool event_domains;
  bool external;
  bool adopt_own; /* asked for, so that the conformance kit knows; streams are always adopted by their address */
  uint32_t n_rules;
  uint32_t n_speeds;
  sim_rule rules[SIM_MAX_RULES];
  sim_speed speeds[SIM_MAX_SPEEDS];
  char wrong_op[40]; /* the operator with a wrong result; "": none */
  uint64_t wrong_at; /* which element; UINT64_MAX: the last */
} sim_settings;

/* A setting: how it is described, where it goes, and what it may be. */
typedef struct sim_setting {
  heddle_psetting p; /* first: the root table gives the array to the host */
  int32_t kind;
  uint32_t reserved;
  uint64_t offset;
  uint64_t fallback;
} sim_setting;
#define SIM_SETTINGS 28
extern const sim_setting sim_settings_all[SIM_SETTINGS];

/* Reads all settings of a context. HEDDLE_EINVAL, naming key, value and what is expected, where one is wrong. */
heddle_status sim_settings_read(const heddle_host *host, sim_settings *out, heddle_error *err);

/* Applies the (key, value) pairs of an open. Those that belong to the instance (devices, peer, event_domains and what
 * device_describe reports) cannot be changed by one device: HEDDLE_EINVAL. */
heddle_status sim_settings_override(sim_settings *settings, const heddle_pdevice_options *options, heddle_error *err);

/* For how many microseconds an operator keeps the device busy, by the setting op_us. */
uint64_t sim_settings_busy_us(const sim_settings *settings, const char *op);

/* One switch, for the entry, which has no instance yet: its value, or fallback where it is unset or wrong. */
bool sim_settings_switch(const heddle_host *host, const char *key, bool fallback);

#endif
