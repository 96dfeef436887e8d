/* tests/broken-plugins/tables.h: the tables and the entry, of the functions that base.h names or that were put in their
 * place. Included once, last; what is defined before decides: BASE_NAME (else the file's name, from the build),
 * BASE_MAJOR, BASE_ROOT_BYTES and BASE_DEVICE_BYTES (struct_size), BASE_ENTRY (a void function that the entry calls
 * first), BASE_PARTITION (op.partition), BASE_SETTINGS and BASE_EXTENSIONS (members of the root). */
#include "plugins/common/pbuild.h"

#ifndef BASE_NAME
#define BASE_NAME BASE_FILE_NAME
#endif
#ifndef BASE_MAJOR
#define BASE_MAJOR HEDDLE_ABI_MAJOR
#endif
#ifndef BASE_ROOT_BYTES
#define BASE_ROOT_BYTES sizeof(heddle_plugin)
#endif
#ifndef BASE_DEVICE_BYTES
#define BASE_DEVICE_BYTES sizeof(heddle_device_table)
#endif

static const heddle_device_table device_table = {
    .struct_size = BASE_DEVICE_BYTES,
    .close = base_device_close,
    .open = base_device_open,
    .query = base_device_query,
    .health = base_device_health,
    .idle = base_device_idle,
#if HEDDLE_ABI_MINOR >= 2 /* 0 in sound_1_0 */
    .reset = base_device_reset,
#endif
};

static const heddle_memory_table memory_table = {
    .struct_size = sizeof(heddle_memory_table),
    .free = base_memory_free,
    .alloc = base_memory_alloc,
    .view = base_memory_view,
    .map = base_memory_map,
    .unmap = base_memory_unmap,
    .native = base_memory_native,
#if HEDDLE_ABI_MINOR >= 1 /* 0 in sound_1_0 */
    .adopt = base_memory_adopt,
#endif
};

static const heddle_copy_table copy_table = {
    .struct_size = sizeof(heddle_copy_table),
    .h2d = base_copy_h2d,
    .d2h = base_copy_d2h,
    .write = base_copy_write,
    .read = base_copy_read,
    .d2d = base_copy_d2d,
    .fill = base_copy_fill,
};

static const heddle_stream_table stream_table = {
    .struct_size = sizeof(heddle_stream_table),
    .close = base_stream_close,
    .create = base_stream_create,
    .submit = base_stream_submit,
    .sync = base_stream_sync,
    .query = base_stream_query,
#if HEDDLE_ABI_MINOR >= 2 /* 0 in sound_1_0 */
    .adopt = base_stream_adopt,
#endif
};

static const heddle_event_table event_table = {
    .struct_size = sizeof(heddle_event_table),
    .free = base_event_free,
    .create = base_event_create,
    .record = base_event_record,
    .wait = base_event_wait,
};

static const heddle_fence_table fence_table = {
    .struct_size = sizeof(heddle_fence_table),
    .signal = base_fence_signal,
    .wait = base_fence_wait,
};

static const heddle_op_table op_table = {
    .struct_size = sizeof(heddle_op_table),
    .launch_free = base_launch_free,
    .op_free = base_op_free,
    .query = base_op_query,
    .prepare = base_op_prepare,
    .bind = base_op_bind,
    .run = base_op_run,
#if HEDDLE_ABI_MINOR >= 2 /* 0 in sound_1_0 */
    .resize = base_op_resize,
#endif
    .list = base_op_list,
#ifdef BASE_PARTITION
    .partition = BASE_PARTITION,
#endif
};

static const heddle_plugin root_table = {
    .struct_size = BASE_ROOT_BYTES,
    .abi_major = BASE_MAJOR,
    .abi_minor = HEDDLE_ABI_MINOR,
    .features = P_FEATURES,
    .build = P_BUILD,
    .name = BASE_NAME,
    .close_instance = base_close_instance,
    .open_instance = base_open_instance,
    .device_count = base_device_count,
    .device_describe = base_device_describe,
    .device = &device_table,
    .memory = &memory_table,
    .copy = &copy_table,
    .stream = &stream_table,
    .event = &event_table,
    .fence = &fence_table,
    .op = &op_table,
#ifdef BASE_SETTINGS
    .settings = BASE_SETTINGS,
#endif
#ifdef BASE_EXTENSIONS
    .extensions = BASE_EXTENSIONS,
#endif
};

#ifndef BASE_OWN_ENTRY
const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
#ifdef BASE_ENTRY
  BASE_ENTRY();
#endif
  if (host->abi_major == HEDDLE_ABI_MAJOR) return &root_table;
  p_fail(err, HEDDLE_EABI, 0, "%s: the host has ABI major %u, this plugin is for %u", BASE_FILE_NAME, host->abi_major,
         (unsigned)HEDDLE_ABI_MAJOR);
  return NULL;
}
#endif
