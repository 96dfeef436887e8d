/* Reading the settings: one table of keys says where each goes and what it may be. Text is checked here and nowhere
 * else; the rest of sim sees numbers and switches. */
#include "settings.h"

#include "plugins/common/perror.h"
#include "plugins/common/setting.h"

#include <stddef.h>
#include <string.h>

enum { KIND_NUMBER, KIND_SWITCH, KIND_MODE, KIND_FAIL, KIND_SPEEDS, KIND_WRONG };

#define AT(member) offsetof(sim_settings, member)
#define OWN(own) (own) ? HEDDLE_SETTING_DEVICE : 0
#define PUBLIC(type_of, own, name, text, words, about, least, most) \
  { sizeof(heddle_psetting), HEDDLE_SETTING_##type_of, OWN(own), 0, name, text, words, about, least, most }
#define NUMBER(name, fallback, min, max, own, about) \
  { PUBLIC(NUMBER, own, #name, #fallback, NULL, about, min, max), KIND_NUMBER, 0, AT(name), fallback }
#define SWITCH(name, fallback, own, about) \
  { PUBLIC(SWITCH, own, #name, #fallback, NULL, about, 0, 1), KIND_SWITCH, 0, AT(name), fallback }
#define MODE(name, fallback, text, words, least, about) \
  { PUBLIC(WORD, false, #name, text, words, about, least, 0), KIND_MODE, 0, AT(name), fallback }
#define TEXT(name, kind, about) \
  { PUBLIC(TEXT, true, name, "", NULL, about, 0, 0), kind, 0, 0, 0 }

const sim_setting sim_settings_all[SIM_SETTINGS] = {
    NUMBER(devices, 3, 1, SIM_MAX_DEVICES, false, "number of devices"),
    NUMBER(seed, 1, 0, UINT64_MAX, true, "seed of the random delays and of the devices' clocks"),
    NUMBER(delay_us, 0, 0, 1000000, true, "most microseconds of a random wait before each command"),
    NUMBER(max_buffer_bytes, 0, 0, UINT64_MAX, false, "limit of one buffer; 0: none"),
    NUMBER(memory_bytes, 0, 0, UINT64_MAX, false, "memory of each device; 0: no limit"),
    NUMBER(import_alignment, 64, 1, 65536, false, "alignment of imported memory, a power of two"),
    NUMBER(launch_bytes, 0, 0, 1 << 30, false, "memory that each launch holds"),
    NUMBER(hang, 0, 0, UINT64_MAX, true,
           "the n-th command of a device never ends until it is closed, lost or reset; 0: none"),
    MODE(peer, SIM_ON, "on", "on,off,lie", SIM_OFF, "copies between devices; lie: one byte comes out wrong"),
    MODE(copy, SIM_ON, "on", "on,lie", SIM_ON, "copies to the host; lie: one byte comes out wrong"),
    MODE(import_unified, SIM_OFF, "off", "on,off,lie", SIM_OFF,
         "operators compute in imported memory; lie: in other memory"),
    SWITCH(coherent, 1, false, "0: only flush and invalidate move bytes between mapped memory and the device"),
    SWITCH(unified, 0, false, "has UNIFIED memory"),
    SWITCH(import, 1, false, "imports memory of the host"),
    SWITCH(views, 1, false, "has views of buffers"),
    SWITCH(capture, 1, false, "has captures"),
    SWITCH(layouts, 1, false, "has blocked layouts"),
    SWITCH(fuse, 0, false, "proposes and accepts regions of several nodes"),
    SWITCH(bare, 0, false, "every offer is for whole buffers"),
    SWITCH(needs_open, 0, false, "pure functions need an open device"),
    SWITCH(fence_wait, 1, false, "streams can wait for fences"),
    SWITCH(wait_before_signal, 1, false, "a wait may be submitted before its signal"),
    SWITCH(event_domains, 0, false, "each device is an event domain of its own"),
    SWITCH(external, 0, false, "shares memory by file descriptors"),
    SWITCH(adopt_own, 0, false, "for heddle check-plugin; streams are always adopted by their address"),
    TEXT("fail", KIND_FAIL, "calls that fail, as CALL:N, with commas between"),
    TEXT("op_us", KIND_SPEEDS, "microseconds of operators, as OPERATOR:N or N"),
    TEXT("wrong", KIND_WRONG, "an operator with a wrong result, as OPERATOR or OPERATOR:K"),
};
enum { N_SETTINGS = SIM_SETTINGS };

static const char *const call_words[SIM_CALL_COUNT] = {
#define SIM_CALL_WORD(name, word) word,
    SIM_CALL_LIST(SIM_CALL_WORD)
#undef SIM_CALL_WORD
};

/* Reads decimal digits at *text and moves it behind them; false where there are none or they do not fit. */
static bool read_number(const char **text, uint64_t *out) {
  const char *p = *text;
  uint64_t n = 0;
  if (*p < '0' || *p > '9') return false;
  for (; *p >= '0' && *p <= '9'; p++) {
    uint64_t digit = (uint64_t)(*p - '0');
    if (n > (UINT64_MAX - digit) / 10) return false;
    n = n * 10 + digit;
  }
  *text = p;
  *out = n;
  return true;
}

/* Moves *text behind word where that is what it begins with. */
static bool skip(const char **text, const char *word) {
  size_t n = strlen(word);
  if (strncmp(*text, word, n) != 0) return false;
  *text += n;
  return true;
}

/* KIND:N, then "@DEVICE", ":async" and ":fault" in any order; *text is left at the comma or the end. */
static bool read_rule(const char **text, sim_rule *rule) {
  const char *colon = strchr(*text, ':');
  uint64_t device;
  memset(rule, 0, sizeof *rule);
  rule->device = -1;
  if (colon == NULL) return false;
  size_t length = (size_t)(colon - *text);
  int call = 0;
  while (call < SIM_CALL_COUNT && (strlen(call_words[call]) != length || strncmp(call_words[call], *text, length) != 0))
    call++;
  if (call == SIM_CALL_COUNT) return false;
  rule->call = (sim_call)call;
  *text = colon + 1;
  if (!read_number(text, &rule->n) || rule->n == 0) return false;
  while (**text != '\0' && **text != ',') {
    if (skip(text, "@")) {
      if (!read_number(text, &device) || device >= SIM_MAX_DEVICES) return false;
      rule->device = (int32_t)device;
    } else if (skip(text, ":async")) {
      rule->async = true;
    } else if (skip(text, ":fault")) {
      rule->fault = true;
    } else {
      return false;
    }
  }
  return true;
}

static heddle_status read_rules(sim_settings *settings, const char *text, heddle_error *err) {
  const char *p = text;
  settings->n_rules = 0;
  if (*p == '\0' || strcmp(p, "off") == 0 || strcmp(p, "0") == 0) return HEDDLE_OK;
  for (;;) {
    if (settings->n_rules == SIM_MAX_RULES) {
      return p_fail(err, HEDDLE_ELIMIT, 0, "setting 'fail' of sim: '%s' has more than %d rules", text, SIM_MAX_RULES);
    }
    if (!read_rule(&p, &settings->rules[settings->n_rules])) {
      return p_fail(err, HEDDLE_EINVAL, 0,
                    "setting 'fail' of sim: '%s' is not a comma list of CALL:N, each with @DEVICE, :async or :fault "
                    "behind it where wanted; the calls are those of docs/sim.md, N counts from 1",
                    text);
    }
    settings->n_rules++;
    if (*p == '\0') return HEDDLE_OK;
    p++;
  }
}

/* "40", or "MatMul:400,Relu:20", or both: the number alone is of all others. */
static heddle_status read_speeds(sim_settings *settings, const char *text, heddle_error *err) {
  const char *p = text;
  settings->n_speeds = 0;
  while (settings->n_speeds < SIM_MAX_SPEEDS) {
    sim_speed *speed = &settings->speeds[settings->n_speeds++];
    const size_t n = strcspn(p, ":,");
    *speed = (sim_speed){.us = 0};
    if (p[n] == ':' && n > 0 && n < sizeof speed->op) {
      memcpy(speed->op, p, n);
      p += n + 1;
    }
    if (!read_number(&p, &speed->us) || speed->us > 1000000 || (*p != '\0' && *p != ',')) break;
    if (*p++ == '\0') return HEDDLE_OK;
  }
  settings->n_speeds = 0;
  return p_fail(err, HEDDLE_EINVAL, 0,
                "setting 'op_us' of sim: '%s' is not a comma list of at most %d of OPERATOR:N or N, in microseconds up "
                "to 1000000",
                text, SIM_MAX_SPEEDS);
}

/* "MatMul", or "MatMul:5". */
static heddle_status read_wrong(sim_settings *settings, const char *text, heddle_error *err) {
  const size_t n = strcspn(text, ":");
  const char *p = text + n;
  settings->wrong_op[0] = '\0';
  settings->wrong_at = UINT64_MAX;
  if (text[0] == '\0' || strcmp(text, "off") == 0 || strcmp(text, "0") == 0) return HEDDLE_OK;
  if (n == 0 || n >= sizeof settings->wrong_op || (skip(&p, ":") && !read_number(&p, &settings->wrong_at)) ||
      *p != '\0')
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "setting 'wrong' of sim: '%s' is neither OPERATOR nor OPERATOR:K, K the number of an element", text);
  memcpy(settings->wrong_op, text, n);
  settings->wrong_op[n] = '\0';
  return HEDDLE_OK;
}

uint64_t sim_settings_busy_us(const sim_settings *settings, const char *op) {
  uint64_t us = 0;
  for (uint32_t i = 0; i < settings->n_speeds; i++) {
    if (strcmp(settings->speeds[i].op, op) == 0) return settings->speeds[i].us;
    if (settings->speeds[i].op[0] == '\0' && strcmp(op, "Reorder") != 0) us = settings->speeds[i].us;
  }
  return us;
}

static heddle_status apply(const sim_setting *s, const char *text, sim_settings *settings, heddle_error *err) {
  char *member = (char *)settings + s->offset;
  const char *p = text;
  uint64_t number;
  bool flag;
  sim_mode mode;
  switch (s->kind) {
  case KIND_NUMBER:
    if (!read_number(&p, &number) || *p != '\0' || number < s->p.low || number > s->p.high) {
      return p_fail(err, HEDDLE_EINVAL, 0, "setting '%s' of sim: '%s' is not a number from %llu to %llu", s->p.key,
                    text, (unsigned long long)s->p.low, (unsigned long long)s->p.high);
    }
    memcpy(member, &number, sizeof number);
    return HEDDLE_OK;
  case KIND_SWITCH:
    if (!p_switch(text, &flag)) {
      return p_fail(err, HEDDLE_EINVAL, 0, "setting '%s' of sim: '%s' is neither 0 nor 1", s->p.key, text);
    }
    memcpy(member, &flag, sizeof flag);
    return HEDDLE_OK;
  case KIND_MODE:
    if (strcmp(text, "lie") == 0) mode = SIM_LIE;
    else if (p_switch(text, &flag) && (flag || s->p.low == SIM_OFF)) mode = flag ? SIM_ON : SIM_OFF;
    else
      return p_fail(err, HEDDLE_EINVAL, 0, "setting '%s' of sim: '%s' is none of on, %slie", s->p.key, text,
                    s->p.low == SIM_OFF ? "off, " : "");
    memcpy(member, &mode, sizeof mode);
    return HEDDLE_OK;
  case KIND_SPEEDS: return read_speeds(settings, text, err);
  case KIND_WRONG: return read_wrong(settings, text, err);
  default: return read_rules(settings, text, err);
  }
}

/* The rules that no single setting can state. */
static heddle_status check(const sim_settings *s, heddle_error *err) {
  if ((s->import_alignment & (s->import_alignment - 1)) != 0) {
    return p_fail(err, HEDDLE_EINVAL, 0, "setting 'import_alignment' of sim: %llu is not a power of two",
                  (unsigned long long)s->import_alignment);
  }
  for (uint32_t i = 0; i < s->n_rules; i++) {
    if (s->rules[i].device >= 0 && (uint64_t)s->rules[i].device >= s->devices) {
      return p_fail(err, HEDDLE_EINVAL, 0, "setting 'fail' of sim: there is no device %d of %llu", s->rules[i].device,
                    (unsigned long long)s->devices);
    }
  }
  return HEDDLE_OK;
}

heddle_status sim_settings_read(const heddle_host *host, sim_settings *out, heddle_error *err) {
  char text[1024];
  memset(out, 0, sizeof *out);
  for (int i = 0; i < N_SETTINGS; i++) {
    const sim_setting *s = &sim_settings_all[i];
    uint64_t number = s->fallback;
    bool flag = s->fallback != 0;
    if (s->kind == KIND_NUMBER) memcpy((char *)out + s->offset, &number, sizeof number);
    if (s->kind == KIND_SWITCH) memcpy((char *)out + s->offset, &flag, sizeof flag);
    const sim_mode mode = (sim_mode)s->fallback;
    if (s->kind == KIND_MODE) memcpy((char *)out + s->offset, &mode, sizeof mode);

    int64_t length = host->config(host->ctx, s->p.key, text, sizeof text);
    if (length < 0) continue;
    if ((uint64_t)length >= sizeof text) {
      return p_fail(err, HEDDLE_EINVAL, 0, "setting '%s' of sim is longer than %d characters", s->p.key,
                    (int)sizeof text - 1);
    }
    heddle_status status = apply(s, text, out, err);
    if (status != HEDDLE_OK) return status;
  }
  return check(out, err);
}

heddle_status sim_settings_override(sim_settings *settings, const heddle_pdevice_options *options, heddle_error *err) {
  if (!HEDDLE_HAS(heddle_pdevice_options, options, settings) || options->settings.count == 0) return HEDDLE_OK;
  for (uint64_t i = 0; i < options->settings.count; i++) {
    heddle_pkeyvalue pair;
    memcpy(&pair, (const char *)options->settings.data + i * options->settings.stride, sizeof pair);
    int k = 0;
    while (k < N_SETTINGS && strcmp(sim_settings_all[k].p.key, pair.key) != 0) k++;
    if (k == N_SETTINGS)
      return p_fail(err, HEDDLE_EINVAL, 0, "sim has no setting '%s'; docs/sim.md lists them", pair.key);
    if ((sim_settings_all[k].p.flags & HEDDLE_SETTING_DEVICE) == 0) {
      return p_fail(err, HEDDLE_EINVAL, 0,
                    "setting '%s' of sim belongs to all its devices: give it to the context, not to one device",
                    pair.key);
    }
    heddle_status status = apply(&sim_settings_all[k], pair.value, settings, err);
    if (status != HEDDLE_OK) return status;
  }
  return check(settings, err);
}

bool sim_settings_switch(const heddle_host *host, const char *key, bool fallback) {
  char text[16];
  bool flag;
  int64_t length = host->config(host->ctx, key, text, sizeof text);
  if (length < 0 || (uint64_t)length >= sizeof text || !p_switch(text, &flag)) return fallback;
  return flag;
}
