/* plugins/common/check/contract.h: what the loader, the check layer and the conformance kit require alike of a plugin's
 * tables, texts and descriptions of devices, and the words in which they report what is wrong. It needs heddle/plugin.h
 * alone.
 *
 * Functions with why return false where the contract is broken, with one line of text in why[CONTRACT_TEXT]. All are pure.
 * Any thread. */
#ifndef HEDDLE_PLUGINS_COMMON_CHECK_CONTRACT_H
#define HEDDLE_PLUGINS_COMMON_CHECK_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>

#include "heddle/plugin.h"

enum { CONTRACT_TEXT = 400, CONTRACT_NAME = 64 /* bytes of a plugin's name, with its terminator */ };

/* A plugin's tables, each taken over a zeroed one: what the plugin lacks is NULL. has_* tell whether the group is there at
 * all. */
typedef struct contract_tables {
  heddle_device_table device;
  heddle_memory_table memory;
  heddle_copy_table copy;
  heddle_stream_table stream;
  heddle_event_table event;
  heddle_fence_table fence;
  heddle_op_table op;
  heddle_layout_table layout;
  heddle_module_table module;
  heddle_capture_table capture;
  heddle_timing_table timing;
  heddle_external_table external;
  bool has_event, has_op, has_layout, has_module, has_capture, has_timing, has_external;
} contract_tables;

/* Copies a struct of the other side over a zeroed one of dst_bytes. size_bytes is the width of its struct_size, 4 or 8.
 * False where struct_size makes no sense. */
bool contract_copy(void *dst, size_t dst_bytes, const void *src, size_t size_bytes);

/* What the entry returned, from its frozen first 32 bytes on: root and tables are filled where it is of this major and its
 * sizes can be read. contract_frozen is the first half alone: nothing behind these bytes is read. */
bool contract_frozen(const heddle_plugin *theirs, char *why);
bool contract_take(const heddle_plugin *theirs, heddle_plugin *root, contract_tables *tables, char *why);

/* Whether each table is at least as long as in the first version that had it, and each required function is there. */
bool contract_sizes(const heddle_plugin *root, char *why);
bool contract_complete(const heddle_plugin *root, const contract_tables *tables, char *why);

bool contract_name(const char *name, char *why);

/* The description of device index: texts, numbers, type, and what its capabilities require of the tables. */
bool contract_device_texts(uint32_t index, const heddle_pdevice_desc *d, char *why);
bool contract_device_numbers(uint32_t index, const heddle_pdevice_desc *d, char *why);
bool contract_device_type(uint32_t index, const heddle_pdevice_desc *d, const char *plugin, char *why);
bool contract_device_caps(uint32_t index, const heddle_pdevice_desc *d, const contract_tables *t, char *why);
/* Whether two devices of one plugin have different uuids, unless they are two drivers' views of one device. */
bool contract_device_pair(uint32_t i, const heddle_pdevice_desc *a, uint32_t j, const heddle_pdevice_desc *b,
                          char *why);

#if HEDDLE_ABI_MINOR >= 2
/* The descriptions of settings (heddle_plugin.settings). contract_setting_at checks the list and its setting i, which it
 * copies over a zeroed one; an i beyond the list is well as far as the list is. contract_setting_takes: is the value one of
 * those that the description allows? contract_host_setting: does the host itself read a setting of that name? */
bool contract_setting_at(const heddle_parray *all, uint64_t i, heddle_psetting *out, char *why);
bool contract_setting(const heddle_psetting *s, uint64_t i, char *why);
bool contract_setting_takes(const heddle_psetting *s, const char *value);
bool contract_host_setting(const char *key);

/* The chain of a plugin's extensions. */
bool contract_extensions(const heddle_pextension *first, char *why);
#endif

/* What is wrong with a text in text[0..bytes), to follow its name: "is not terminated". NULL: it is one line of UTF-8 with
 * a terminator. */
const char *contract_text_fault(const char *text, uint64_t bytes);

#endif
