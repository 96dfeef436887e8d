/* The loader: what it refuses and in which words, what is the same plugin twice, faults, forks, memory that runs out. */
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cases.h"
#include "core/alloc.h"
#include "core/registry.h"

#define PROBES HEDDLE_TEST_BUILD "/tests/plugins/libheddle_plugin_"

static heddle_context *ctx;
static heddle_error err;

static void open_with(const char *plugins, const char *key, const char *value) {
  const heddle_setting settings[] = {{"plugins", plugins}, {"log", "off"}, {key, value}};
  assert_int_equal(heddle_context_create(settings, key != NULL ? 3 : 2, NULL, NULL, &ctx, &err), HEDDLE_OK);
}

static void done(void) {
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

static heddle_plugin_info info(size_t i) {
  heddle_plugin_info out = {.struct_size = sizeof out};
  assert_int_equal(heddle_context_plugin(ctx, i, &out, &err), HEDDLE_OK);
  return out;
}

static void expect_refused(const char *path, const char *words) {
  open_with(path, NULL, NULL);
  assert_int_equal(heddle_context_plugin_count(ctx), 1);
  heddle_plugin_info out = info(0);
  if (out.used || strstr(out.reason, words) == NULL) fail_msg("%s: '%s' lacks '%s'", path, out.reason, words);
  assert_string_equal(out.found_by, "call");
  assert_int_equal(heddle_context_device_count(ctx), 0);
  done();
}

static void a_good_plugin_is_used(void **state) {
  (void)state;
  open_with(PROBES "probe.so", NULL, NULL);
  heddle_plugin_info out = info(0);
  assert_int_equal(out.used, 1);
  assert_string_equal(out.name, "probe");
  assert_string_equal(out.reason, "");
  assert_int_equal(out.device_count, 2);
  heddle_device_info d = {.struct_size = sizeof d};
  assert_int_equal(heddle_device_get_info(heddle_context_device(ctx, 1), &d, &err), HEDDLE_OK);
  assert_string_equal(d.name, "probe:1");
  assert_int_equal(d.alignment, 64);
  assert_int_equal(d.is_default, 0);
  heddle_plugin_info small = {.struct_size = offsetof(heddle_plugin_info, path), .path = "kept"};
  assert_int_equal(heddle_context_plugin(ctx, 0, &small, &err), HEDDLE_OK);
  assert_string_equal(small.path, "kept"); /* a caller of an older header */
  done();
}

static void broken_plugins_are_refused(void **state) {
  (void)state;
  expect_refused(PROBES "probe_no_alloc.so", "plugin no_alloc: memory.alloc is missing");
  expect_refused(PROBES "probe_no_signal.so", "device 1: the device is not inline, and fence.signal is missing");
  expect_refused(PROBES "probe_no_driver.so", "libprobe.so.1 is not installed");
  expect_refused(PROBES "probe_major.so", "ABI 2.2, this host has 1.");
  expect_refused(PROBES "probe_refuses.so", "does not like this host");
  expect_refused(PROBES "probe_name.so", "lower-case");
  expect_refused(PROBES "probe_alignment.so", "alignment is 48");
  expect_refused(PROBES "probe_setting_size.so", "struct_size of its setting 0 is wrong");
  expect_refused(PROBES "probe_setting_help.so", "its setting 'speed' has no help");
  expect_refused(PROBES "probe_setting_word.so", "its setting 'mode' is of type WORD and has no values");
  expect_refused(PROBES "probe_setting_host.so", "its setting 'regions' has the name of one of the host's");
  expect_refused(PROBES "probe_extension.so", "extension 0 of its chain has no name");
  expect_refused(PROBES "probe_extension_ring.so", "more than 64 members");
  expect_refused("/nowhere/libheddle_plugin_x.so", "no such");
  expect_refused("relative/libheddle_plugin_x.so", "relative");
}

/* ---- files that are no plugins, made from one that is */

static char folder[] = "/tmp/heddle-loader-XXXXXX";
static unsigned char *bytes;
static size_t size;

static void read_probe(void) {
  assert_non_null(mkdtemp(folder));
  FILE *f = fopen(PROBES "probe.so", "rb");
  assert_non_null(f);
  fseek(f, 0, SEEK_END);
  size = (size_t)ftell(f);
  rewind(f);
  bytes = malloc(size);
  assert_int_equal(fread(bytes, 1, size, f), size);
  fclose(f);
}

static const char *write_as(const char *name, const void *data, size_t n) {
  static char path[256];
  snprintf(path, sizeof path, "%s/libheddle_plugin_%s.so", folder, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, n, f), n);
  fclose(f);
  return path;
}

static void expect_file_refused(const void *data, size_t n, const char *words) {
  const char *path = write_as("x", data, n);
  expect_refused(path, words);
  unlink(path);
}

static void no_library_gets_through(void **state) {
  (void)state;
  read_probe();
  Elf64_Ehdr *h = (Elf64_Ehdr *)(void *)bytes;
  expect_file_refused("hello, this is a text file with some length to it, more than an ELF header has", 78,
                      "no ELF file");
  expect_file_refused("", 0, "no ELF file");
  expect_file_refused(bytes, 40, "no ELF file");
  expect_file_refused(bytes, 100, "cut off");
  Elf64_Ehdr kept = *h;
  h->e_machine = EM_S390;
  expect_file_refused(bytes, size, "another kind of processor");
  *h = kept;
  h->e_ident[EI_CLASS] = ELFCLASS32;
  expect_file_refused(bytes, size, "32-bit");
  *h = kept;
  h->e_ident[EI_DATA] = ELFDATA2MSB;
  expect_file_refused(bytes, size, "big-endian");
  *h = kept;
  h->e_type = ET_REL;
  expect_file_refused(bytes, size, "another type");
  *h = kept;
  h->e_phnum = 0xffff;
  expect_file_refused(bytes, size, "malformed");
  *h = kept;
  h->e_phoff = UINT64_MAX - 8;
  expect_file_refused(bytes, size, "cut off");
  *h = kept;
  Elf64_Phdr *ph = (Elf64_Phdr *)(void *)(bytes + h->e_phoff);
  for (int i = 0; i < h->e_phnum; i++)
    if (ph[i].p_type == PT_DYNAMIC) ph[i].p_offset = size + 4096;
  expect_file_refused(bytes, size, "cut off");
  free(bytes);
  rmdir(folder);
}

/* Every byte of the headers and of the dynamic section may be wrong: no crash before dlopen. */
static void mangled_headers_do_no_harm(void **state) {
  (void)state;
  extern heddle_status heddle__elf_check(const char *path, heddle_error *e);
  read_probe();
  unsigned seed = 1;
  for (int round = 0; round < 300; round++) {
    unsigned char *copy = malloc(size);
    memcpy(copy, bytes, size);
    for (int k = 0; k < 4; k++) {
      seed = seed * 1103515245u + 12345u;
      copy[16 + (seed >> 8) % 1000] = (unsigned char)(seed >> 20);
    }
    heddle_error why = {0, 0, ""};
    heddle__elf_check(write_as("x", copy, size), &why);
    free(copy);
  }
  free(bytes);
  unlink(write_as("x", "", 0));
  rmdir(folder);
}

static void another_sanitizer_is_refused(void **state) {
  (void)state;
  read_probe();
  /* The name of a symbol of ours becomes that of the runtime's: what the loader looks for is the name. */
  static const char want[] = "__msan_init", have[] = "heddle_plugin_entry";
  size_t changed = 0;
  for (size_t i = 0; i + sizeof have <= size; i++)
    if (memcmp(bytes + i, have, sizeof have) == 0 && bytes[i - 1] == '\0') {
      memcpy(bytes + i, want, sizeof want);
      changed++;
    }
  assert_true(changed > 0);
  expect_file_refused(bytes, size, "MemorySanitizer");
  free(bytes);
  rmdir(folder);
}

static void one_plugin_by_two_names_is_one(void **state) {
  (void)state;
  char link[256], list[1024];
  assert_non_null(mkdtemp(folder));
  snprintf(link, sizeof link, "%s/libheddle_plugin_again.so", folder);
  assert_int_equal(symlink(PROBES "probe.so", link), 0);
  snprintf(list, sizeof list, "%s:%s:%s", PROBES "probe.so", link, PROBES "probe_twin.so");
  open_with(list, NULL, NULL);
  assert_int_equal(heddle_context_plugin_count(ctx), 3);
  assert_int_equal(info(0).used, 1);
  assert_non_null(strstr(info(1).reason, "the same file as"));
  assert_non_null(strstr(info(2).reason, "a plugin 'probe' was found first"));
  assert_int_equal(heddle_context_device_count(ctx), 2);
  unlink(link);
  rmdir(folder);
  done();
}

/* Plugins whose devices are of no type of DLPack's have a number each; two names with one number are refused. */
static void device_types_are_of_one_plugin(void **state) {
  (void)state;
  heddle_device_info d = {.struct_size = sizeof d};
  heddle_device *found = NULL;
  const int32_t type = heddle_plugin_device_type("probe");
  assert_int_equal(type, 19119082); /* for as long as the name is */
  assert_int_equal(type, heddle_plugin_device_type("npu_auzjiq"));
  assert_true(heddle_plugin_device_type("sim") != heddle_plugin_device_type("mine"));
  assert_int_equal(heddle_plugin_device_type(""), 0);
  assert_int_equal(heddle_plugin_device_type(NULL), 0);
  open_with(PROBES "probe.so:" PROBES "probe_like.so:" HEDDLE_TEST_BUILD "/lib/heddle/plugins/libheddle_plugin_null.so",
            NULL, NULL);
  assert_int_equal(info(0).used, 1);
  assert_int_equal(info(1).used, 0);
  assert_non_null(strstr(info(1).reason, "npu_auzjiq"));
  assert_non_null(strstr(info(1).reason, "that of plugin 'probe'"));
  assert_int_equal(heddle_device_get_info(heddle_context_device(ctx, 1), &d, &err), HEDDLE_OK);
  assert_int_equal(d.type, type);
  assert_int_equal(heddle_context_dlpack_device(ctx, type, 1, &found, &err), HEDDLE_OK);
  assert_string_equal(heddle_device_name(found), "probe:1");
  assert_int_equal(heddle_context_dlpack_device(ctx, type, 2, &found, &err), HEDDLE_ENODEV);
  const int32_t other = heddle_plugin_device_type("null");
  assert_int_equal(heddle_context_dlpack_device(ctx, other, 0, &found, &err), HEDDLE_OK);
  assert_string_equal(heddle_device_name(found), "null:0");
  assert_int_equal(heddle_context_dlpack_device(ctx, HEDDLE_DEVICE_EXT, 0, &found, &err), HEDDLE_EINVAL);
  assert_null(found);
  assert_int_equal(heddle_context_dlpack_device(ctx, heddle_plugin_device_type("mine"), 0, &found, &err),
                   HEDDLE_ENODEV);
  done();
}

static void folders_are_searched_in_order(void **state) {
  (void)state;
  const heddle_setting settings[] = {{"log", "off"}};
  unsetenv("HEDDLE_PLUGINS");
  setenv("HEDDLE_PLUGIN_PATH", HEDDLE_TEST_BUILD "/tests/plugins:/nowhere", 1);
  assert_int_equal(heddle_context_create(settings, 1, NULL, NULL, &ctx, &err), HEDDLE_OK);
  const char *before = "";
  size_t from_variable = 0;
  for (size_t i = 0; i < heddle_context_plugin_count(ctx); i++) {
    heddle_plugin_info p = info(i);
    if (strcmp(p.found_by, "HEDDLE_PLUGIN_PATH") != 0) continue;
    from_variable++;
    if (strcmp(p.path, "/nowhere") == 0) continue;
    assert_true(strcmp(before, p.path) < 0);
    before = p.path;
  }
  assert_true(from_variable >= 12);
  done();
  setenv("HEDDLE_PLUGINS", "0", 1);
  assert_int_equal(heddle_context_create(settings, 1, NULL, NULL, &ctx, &err), HEDDLE_OK);
  assert_int_equal(heddle_context_plugin_count(ctx), 0);
  done();
}

/* ---- devices */

static void opening_is_counted(void **state) {
  (void)state;
  open_with(PROBES "probe.so", NULL, NULL);
  heddle_device *d = heddle_context_device(ctx, 1);
  assert_int_equal(heddle__device_open(d, &err), HEDDLE_OK);
  heddle_pdevice *handle = d->handle;
  assert_int_equal(heddle__device_open(d, &err), HEDDLE_OK);
  assert_ptr_equal(d->handle, handle);
  assert_int_equal(heddle_device_health(d, &err), HEDDLE_OK);
  assert_int_equal(heddle_device_reopen(d, &err), HEDDLE_EBUSY);
  heddle__device_close(d);
  assert_non_null(d->handle);
  heddle__device_close(d);
  assert_null(d->handle);
  heddle__device_close(d); /* once too often changes nothing */
  assert_int_equal(heddle_device_reopen(d, &err), HEDDLE_OK);
  done();
}

static void a_refused_open_says_why(void **state) {
  (void)state;
  open_with(PROBES "probe.so", "probe.refuse_open", "1");
  assert_int_equal(heddle__device_open(heddle_context_device(ctx, 0), &err), HEDDLE_EFAILED);
  assert_string_equal(err.text, "probe:0 could not be opened: probe: open was refused");
  done();
}

static void a_fault_sticks_until_reopened(void **state) {
  (void)state;
  open_with(PROBES "probe.so", "probe.fault", "the link went down");
  heddle_device *d = heddle_context_device(ctx, 1), *other = heddle_context_device(ctx, 0);
  assert_int_equal(heddle__device_open(d, &err), HEDDLE_OK); /* the probe reports the fault from there */
  assert_int_equal(heddle__device_check(d, &err), HEDDLE_EDEVICE);
  assert_string_equal(err.text, "probe:1 was lost: the link went down");
  assert_int_equal(err.api_code, 719);
  heddle__device_fault(d, 1, "later words");
  assert_int_equal(heddle_device_health(d, &err), HEDDLE_EDEVICE);
  assert_string_equal(err.text, "probe:1 was lost: the link went down");
  assert_int_equal(heddle__device_check(other, &err), HEDDLE_OK);
  heddle__device_close(d);
  heddle__device_fault_by_cookie(d->plugin, 0x100000001, 0, "of the first opening");
  assert_int_equal(heddle_device_reopen(d, &err), HEDDLE_OK);
  done();
}

static void a_hung_device_is_left_behind(void **state) {
  (void)state;
  open_with(PROBES "probe.so", "probe.hang", "1");
  heddle_device *d = heddle_context_device(ctx, 1);
  assert_int_equal(heddle__device_open(d, &err), HEDDLE_OK);
  heddle__device_close(d);
  heddle_context_release(ctx);
  assert_true(heddle__alloc_live() > 0); /* what its work may touch is still there */
}

static void a_fork_is_noticed(void **state) {
  (void)state;
  open_with(PROBES "probe.so", NULL, NULL);
  heddle_device *d = heddle_context_device(ctx, 0);
  pid_t early = fork(); /* no device is open: the child may use the context */
  if (early == 0) _exit(heddle__check_fork(NULL) == HEDDLE_OK ? 0 : 1);
  int status = 0;
  waitpid(early, &status, 0);
  assert_int_equal(status, 0);
  assert_int_equal(heddle__device_open(d, &err), HEDDLE_OK);
  pid_t child = fork();
  if (child == 0) {
    heddle_device *found;
    size_t n;
    const char *value;
    int good = heddle_context_find_device(ctx, "probe", &found, &err) == HEDDLE_EFORK;
    good &= heddle_context_select(ctx, NULL, &found, 1, &n, NULL, &err) == HEDDLE_EFORK;
    good &= heddle_context_setting(ctx, "log", &value, NULL, &err) == HEDDLE_EFORK;
    good &= heddle_device_health(d, &err) == HEDDLE_EFORK;
    good &= heddle__device_open(d, &err) == HEDDLE_EFORK;
    heddle_context *own = NULL;
    good &= heddle_context_create(NULL, 0, NULL, NULL, &own, &err) == HEDDLE_EFORK && own == NULL;
    heddle__device_close(d);
    heddle_context_release(ctx);
    _exit(good ? 0 : 1);
  }
  waitpid(child, &status, 0);
  assert_int_equal(status, 0);
  assert_int_equal(heddle__check_fork(NULL), HEDDLE_OK);
  heddle__device_close(d);
  done();
}

/* Each allocation in turn fails while a context is made and a device opened. */
static void memory_may_run_out_anywhere(void **state) {
  (void)state;
  const heddle_setting settings[] = {{"plugins", PROBES "probe.so:" PROBES "probe_major.so"},
                                     {"log", "off"},
                                     {"layers", "check,fault"},
                                     {"probe.1.key", "value"}};
  bool through = false;
  for (uint64_t n = 1; n < 400 && !through; n++) {
    heddle_context *c = NULL;
    heddle__alloc_fail_at(n);
    heddle_status s = heddle_context_create(settings, 4, NULL, NULL, &c, &err);
    if (s == HEDDLE_OK) {
      assert_int_equal(heddle_context_device_count(c), 2);
      heddle_device *d = heddle_context_device(c, 1);
      s = heddle__device_open(d, &err);
      if (s == HEDDLE_OK) {
        through = n > 20;
        heddle__device_close(d);
      }
    }
    if (s != HEDDLE_OK) assert_int_equal(s, HEDDLE_ENOMEM);
    heddle__alloc_fail_at(0);
    heddle_context_release(c);
    if (heddle__alloc_live() != 0)
      fail_msg("allocation %u failed, and %zu blocks were lost", (unsigned)n, heddle__alloc_live());
  }
  assert_true(through);
}

CASES(CASE(a_good_plugin_is_used), CASE(device_types_are_of_one_plugin), CASE(broken_plugins_are_refused),
      CASE(no_library_gets_through), CASE(mangled_headers_do_no_harm), CASE(another_sanitizer_is_refused),
      CASE(one_plugin_by_two_names_is_one), CASE(folders_are_searched_in_order), CASE(opening_is_counted),
      CASE(a_refused_open_says_why), CASE(a_fault_sticks_until_reopened), CASE(a_hung_device_is_left_behind),
      CASE(a_fork_is_noticed), CASE(memory_may_run_out_anywhere))
