/* conformance/kit.h: what a check of the conformance kit (heddle check-plugin) is made of. The kit is a host of its own
 * beside libheddle: it knows a plugin through heddle/plugin.h alone, and runs each case in a process of its own (those of
 * operators in rows, see KIT_SERIES), which opens the plugin, runs the case and writes one result. A case that crashes, hangs or ends its process is a failed case
 * with that for a reason. kit_*.c are the parts here; a file a group of cases beside them. */
#ifndef HEDDLE_CONFORMANCE_KIT_H
#define HEDDLE_CONFORMANCE_KIT_H

#include <stdbool.h>

#include "heddle/plugin.h"
#include "plugins/common/check/contract.h"

typedef contract_tables kit_tables;

typedef struct kit_side kit_side; /* what only the kit's own parts see: the result, the host's counters, the settings */

/* One case's process. */
typedef struct kit {
  const char *file;  /* the plugin's path */
  const char *name;  /* of the case */
  const char *param; /* what follows the case's own name in "op/run:Conv", else "" */
  uint32_t index;    /* the device under test */
  heddle_host host;  /* the kit's table; host.ctx is the kit */
  /* From here on as far as the case's stage goes (KIT_STAGE_*): */
  const heddle_plugin *theirs; /* as the entry returned it */
  heddle_plugin root;          /* taken over a zeroed one */
  kit_tables t;
  heddle_pinstance *instance;
  uint32_t n_devices;
  heddle_pdevice_desc desc;
  heddle_pdevice *dev;
  heddle_error err; /* for the case's calls */
  kit_side *side;
} kit;

/* How far the kit goes before it calls the case. The cases load/entry, root/open and device/open are the gates of the
 * stages: what is behind a gate that failed is not run, so that one fault is reported once. A stage that fails behind an
 * open gate fails the case. */
enum {
  KIT_STAGE_FILE,     /* nothing: the case opens the file itself */
  KIT_STAGE_ENTRY,    /* the entry has answered; tables are taken */
  KIT_STAGE_INSTANCE, /* an instance is open and its devices are counted; desc is device index's */
  KIT_STAGE_DEVICE    /* the device is open */
};

/* kit_case.flags. NOT_INLINE: skipped on inline devices. LEAVES: the case leaves the device open and its objects alive
 * on purpose; the process ends by exit without closing anything. LONG: left out with --quick. SECOND: there must be two
 * devices. OPENS: the case opens a device itself, from whatever stage: it is not run where that is known to fail.
 * REFUSES: the case is for devices too that make neither streams nor memory, as that of a template; others at stage DEVICE
 * are skipped there. LOSES: the case loses the device; host.config has lose_on_fill.
 * FAILS: the case makes work fail; host.config has fail_on_fill. ADOPTS: the case adopts streams; host.config has
 * adopt_own. SERIES: cases that leave nothing behind may follow each other in one process, with the same device open. */
#define KIT_NOT_INLINE UINT32_C(1)
#define KIT_LEAVES UINT32_C(2)
#define KIT_LONG UINT32_C(4)
#define KIT_SECOND UINT32_C(8)
#define KIT_OPENS UINT32_C(16)
#define KIT_REFUSES UINT32_C(32)
#define KIT_LOSES UINT32_C(64)
#define KIT_FAILS UINT32_C(128)
#define KIT_ADOPTS UINT32_C(256)
#define KIT_SERIES UINT32_C(512)

/* The words of the hooks lose_on_fill and fail_on_fill. */
#define KIT_LOSE_WORD UINT32_C(0x4c4f5354)
#define KIT_FAIL_WORD UINT32_C(0x4641494c)

typedef struct kit_case {
  const char *name;    /* "memory/alignment": its group and what it checks */
  const char *promise; /* the sentence of plugin.h that it checks, in the kit's words, for the report */
  uint32_t stage;      /* KIT_STAGE_* */
  uint32_t flags;      /* KIT_* */
  uint32_t seconds;    /* time limit; 0: the default, 10 */
  void (*run)(kit *k); /* returns when all is well, else ends in kit_fail or kit_skip */
  /* Optional: a case for every word that this gives ("op/run" with "Conv" is the case "op/run:Conv"). Called once, in a
   * process of its own, at stage INSTANCE. */
  void (*words)(kit *k, void (*each)(void *sink, const char *word), void *sink);
} kit_case;

typedef struct kit_group {
  const char *name;
  const kit_case *cases;
  uint32_t count;
} kit_group;

#define KIT_GROUP(symbol, text, ...) \
  static const kit_case symbol##_cases[] = {__VA_ARGS__}; \
  const kit_group symbol = {text, symbol##_cases, sizeof symbol##_cases / sizeof symbol##_cases[0]}

/* ---- results: the process ends there */

#if defined(__GNUC__)
#define KIT_PRINTF __attribute__((format(printf, 2, 3)))
#define KIT_NORETURN __attribute__((noreturn))
#else
#define KIT_PRINTF
#define KIT_NORETURN
#endif

/* The case fails: the words say what was asked, what was promised and what came instead. */
KIT_NORETURN void kit_fail(kit *k, const char *format, ...) KIT_PRINTF;
/* The case does not apply: the words say why ("the plugin has no layouts"). */
KIT_NORETURN void kit_skip(kit *k, const char *format, ...) KIT_PRINTF;
/* A line for the report beside the result; the case goes on. */
void kit_note(kit *k, const char *format, ...) KIT_PRINTF;
/* Keeps an ability of the device for the core: name is "fence_wait", "peer" or "import_host", works what was seen.
 * Written with the results (docs/conformance.md). A case that fails has seen nothing work. */
void kit_ability(kit *k, const char *name, bool works);
/* From here on the case uses an ability: whatever it then fails of, a crash and a hang included, the core does without. */
void kit_trial(kit *k, const char *name);

/* Fails unless status is HEDDLE_OK; what is the call ("memory.alloc of 64 bytes"). The text is k->err's. */
void kit_ok(kit *k, heddle_status status, const char *what);
/* Notes that the case is about to fail over a status of the last call that was made; kit_ok does so by itself. */
void kit_refused(kit *k, heddle_status status);
/* Fails unless the call failed with one of the two statuses (equal: one) and left a text of one line of UTF-8. */
void kit_fails(kit *k, heddle_status status, heddle_status one, heddle_status other, const char *what);
/* Fails where a text of the plugin's is NULL, not terminated within bytes, of several lines, or no UTF-8. */
void kit_text(kit *k, const char *text, uint64_t bytes, const char *what);

/* ---- the kit as a host (kit_host.c) */

/* A fence of the kit's. signals counts the calls for it; what comes after kit_fence_free is counted by kit_strays. */
heddle_pfence kit_fence(kit *k);
void kit_fence_free(kit *k, heddle_pfence fence);
/* Waits until it has reached value (HEDDLE_OK), has failed (its status), or the time is over (HEDDLE_ETIMEOUT). */
heddle_status kit_fence_wait(kit *k, heddle_pfence fence, uint64_t value, uint64_t timeout_ms);
uint64_t kit_fence_value(kit *k, heddle_pfence fence);
uint32_t kit_fence_signals(kit *k, heddle_pfence fence);  /* how many fence_signal and fence_fail came for it */
const char *kit_fence_words(kit *k, heddle_pfence fence); /* of its failure, "" */
void kit_fence_raise(kit *k, heddle_pfence fence, uint64_t value); /* as another device would */
void kit_fence_break(kit *k, heddle_pfence fence, const char *words);
uint32_t kit_strays(kit *k);

/* What the host's functions have counted: blocks of host.alloc not yet freed, device_fault calls. */
uint64_t kit_host_blocks(kit *k);
/* Gives back the freed blocks that the kit keeps for a while, so that the size of the process is the plugin's doing. */
void kit_host_settle(kit *k);
uint32_t kit_faults(kit *k);
uint64_t kit_fault_cookie(kit *k); /* of the last device_fault */
/* Makes the n-th host.alloc from now fail; 0: none. */
void kit_host_fail_alloc(kit *k, uint64_t n);

uint64_t kit_now_ms(void);
/* How long a case waits for what must come within ms: in proportion to the time limit that was asked for (--timeout). */
uint64_t kit_patience_ms(const kit *k, uint64_t ms);
void kit_sleep_ms(uint64_t ms);

/* ---- what most cases need (kit_device.c). All fail the case where the plugin fails. */

/* Opens one more device / closes it. kit_close_all closes device and instance, as the end of a case does itself. */
heddle_pdevice *kit_open(kit *k, uint32_t index);
void kit_close(kit *k, heddle_pdevice *dev);
void kit_close_all(kit *k);

heddle_pstream *kit_stream(kit *k, heddle_pdevice *dev);
void kit_sync(kit *k, heddle_pstream *stream); /* at most 10 s, in proportion to --timeout */
heddle_pbuffer *kit_buffer(kit *k, heddle_pdevice *dev, uint32_t kind, uint64_t bytes);
void *kit_map(kit *k, heddle_pdevice *dev, heddle_pbuffer *buffer);
void kit_free(kit *k, heddle_pdevice *dev, heddle_pbuffer *buffer);
/* write and read with sync: bytes to and from a buffer of kind DEVICE. */
void kit_put(kit *k, heddle_pstream *stream, heddle_pbuffer *buffer, uint64_t offset, const void *data, uint64_t bytes);
void kit_get(kit *k, heddle_pstream *stream, heddle_pbuffer *buffer, uint64_t offset, void *data, uint64_t bytes);

/* Bytes that depend on seed and position, and the position of the first that differs, or bytes. */
void kit_pattern(void *out, uint64_t bytes, uint32_t seed);
uint64_t kit_compare(const void *data, uint64_t bytes, uint32_t seed);

/* Work that takes a while on the device (at least a few milliseconds, where the plugin has work that can), put into the
 * stream without waiting: rows of copies over large buffers, which kit_busy_free gives back after a sync. */
typedef struct kit_busy kit_busy;
kit_busy *kit_busy_put(kit *k, heddle_pdevice *dev, heddle_pstream *stream);
void kit_busy_free(kit *k, kit_busy *work);

static inline bool kit_inline(const kit *k) {
  return (k->desc.caps & HEDDLE_CAP_INLINE) != 0;
}

/* ---- the groups, in the order of the report (groups.c lists them) */
extern const kit_group kit_load, kit_root, kit_device, kit_settings, kit_errors, kit_process;
extern const kit_group kit_memory, kit_copy, kit_streams, kit_events, kit_fences, kit_capture, kit_timing, kit_external,
    kit_calls, kit_health, kit_threads, kit_leaks;
extern const kit_group kit_query, kit_numerics, kit_regions, kit_layouts, kit_modules;

#endif
