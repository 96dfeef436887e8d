/* The kernels of PTX text and of cubin files: their names and the sizes of their parameters. Sources: NVIDIA's PTX ISA
 * reference (.entry, .param); for cubin the ELF format, and what cuobjdump prints of the section .nv.info of a
 * kernel. */
#include "engine_foreign.h"

#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;

static void open_library(void) {
  const char *path = eng_setting()->kernel_library;
  if (path == NULL || *path == '\0') return;
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "fake gpu: FAKE_GPU_KERNELS: %s\n", dlerror());
}

eng_code *eng_code_new(const char *name, size_t name_bytes) {
  eng_code *code = calloc(1, sizeof *code);
  if (code == NULL) return NULL;
  code->refs = 1;
  snprintf(code->name, sizeof code->name, "%.*s", (int)name_bytes, name);
  code->max_threads = 1024;
  code->max_dynamic = ENG_SHARED;
  code->registers = 32;
  pthread_mutex_init(&code->lock, NULL);
  return code;
}

bool eng_code_param(eng_code *code, unsigned bytes, bool pointer) {
  eng_param *more = realloc(code->params, (code->n_params + 1) * sizeof *more);
  if (more == NULL) return false;
  code->params = more;
  code->params[code->n_params++] = (eng_param){bytes, pointer};
  return true;
}

bool eng_code_list(eng_code ***codes, size_t *count, eng_code *code) {
  eng_code **more = realloc(*codes, (*count + 1) * sizeof *more);
  if (more != NULL) *codes = more;
  if (more == NULL || !eng_code_layout(code)) {
    eng_code_drop(code);
    return false;
  }
  more[(*count)++] = code;
  return true;
}

/* A C function in place of the kernel. */
static void find_native(eng_code *code) {
  pthread_once(&once, open_library);
  void *symbol = library != NULL ? dlsym(library, code->name) : NULL;
  memcpy(&code->native, &symbol, sizeof symbol);
}

/* ---------------------------------------------------------------- PTX */

/* ".param .align 8 .b8 name[24]", ".param .u64 .ptr .global .align 1 name": its bytes; 0: not understood. */
static unsigned param_bytes(const char *at, const char *end) {
  unsigned bytes = 0;
  for (const char *p = at; p < end; p++) {
    if (*p == '[') return bytes * (unsigned)strtoul(p + 1, NULL, 10);
    if (*p != '.' || bytes != 0 || strchr("usfb", p[1]) == NULL || !isdigit((unsigned char)p[2])) continue;
    bytes = (unsigned)strtoul(p + 2, NULL, 10) / 8;
  }
  return bytes;
}

static bool add_params(eng_code *code, const char *at, const char *end) {
  while ((at = strstr(at, ".param")) != NULL && at < end) {
    const char *next = at;
    while (next < end && *next != ',') next++;
    const unsigned bytes = param_bytes(at + 6, next);
    if (bytes == 0 || !eng_code_param(code, bytes, false)) return false;
    at = next;
  }
  return true;
}

int eng_ptx_codes(const char *image, const eng_device *device, eng_code ***codes, size_t *count, char *log,
                  size_t log_bytes) {
  const char *target = strstr(image, ".target sm_");
  const char *at = image;
  if (log != NULL && log_bytes > 0) snprintf(log, log_bytes, "the image is neither PTX nor an ELF file");
  if (strstr(image, ".version") == NULL || target == NULL) return ENG_INVALID_IMAGE;
  if (atoi(target + 11) > device->major * 10 + device->minor) {
    if (log != NULL && log_bytes > 0)
      snprintf(log, log_bytes, "the PTX is for sm_%d, and the device is %s", atoi(target + 11), device->arch);
    return ENG_NO_BINARY;
  }
  while ((at = strstr(at, ".entry")) != NULL) {
    at += 6;
    while (isspace((unsigned char)*at)) at++;
    const size_t name = strcspn(at, " \t\r\n({");
    eng_code *code = eng_code_new(at, name);
    if (code == NULL) return ENG_OUT_OF_MEMORY;
    at += name;
    while (isspace((unsigned char)*at)) at++;
    const char *end = *at == '(' ? strchr(at, ')') : at;
    if (end == NULL || !add_params(code, at, end)) {
      if (log != NULL && log_bytes > 0) snprintf(log, log_bytes, "the parameters of %s are not understood", code->name);
      eng_code_drop(code);
      return ENG_INVALID_PTX;
    }
    find_native(code);
    if (!eng_code_list(codes, count, code)) return ENG_OUT_OF_MEMORY;
    at = end;
  }
  if (log != NULL && log_bytes > 0) log[0] = '\0';
  return ENG_OK;
}

/* ---------------------------------------------------------------- cubin */

#define INFO ".nv.info."
/* An entry with bytes of its own; a parameter's number, place and size. */
enum { FORMAT_VALUE = 4, KPARAM_INFO = 0x17 };

/* Entries: format, attribute, 2 bytes of size or value, and for FORMAT_VALUE so many bytes. The parameters are listed
 * from the last one to the first. */
static bool add_info(eng_code *code, const unsigned char *at, size_t bytes) {
  unsigned sizes[256] = {0};
  size_t n = 0;
  for (size_t i = 0; i + 4 <= bytes;) {
    const size_t size = at[i] == FORMAT_VALUE ? (size_t)at[i + 2] | (size_t)at[i + 3] << 8 : 0;
    if (size > bytes - i - 4) return false;
    if (at[i + 1] == KPARAM_INFO && size == 12) {
      uint16_t ordinal = 0;
      uint32_t word = 0;
      memcpy(&ordinal, at + i + 8, sizeof ordinal);
      memcpy(&word, at + i + 12, sizeof word);
      if (ordinal >= 256) return false;
      sizes[ordinal] = word >> 18;
      if (n < ordinal + 1u) n = ordinal + 1u;
    }
    i += 4 + size;
  }
  for (size_t i = 0; i < n; i++) {
    if (sizes[i] == 0 || !eng_code_param(code, sizes[i], false)) return false;
  }
  return true;
}

int eng_elf_codes(const void *image, eng_code ***codes, size_t *count, char *log, size_t log_bytes) {
  const char *bytes = image;
  Elf64_Ehdr head;
  Elf64_Shdr names, section;
  memcpy(&head, bytes, sizeof head);
  if (log != NULL && log_bytes > 0) snprintf(log, log_bytes, "the ELF file is not one of a GPU's");
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != 190 || head.e_shentsize != sizeof section)
    return ENG_INVALID_IMAGE;
  memcpy(&names, bytes + head.e_shoff + (size_t)head.e_shstrndx * sizeof names, sizeof names);
  for (size_t i = 0; i < head.e_shnum; i++) {
    memcpy(&section, bytes + head.e_shoff + i * sizeof section, sizeof section);
    const char *name = bytes + names.sh_offset + section.sh_name;
    if (strncmp(name, INFO, strlen(INFO)) != 0) continue;
    eng_code *code = eng_code_new(name + strlen(INFO), strlen(name + strlen(INFO)));
    if (code == NULL) return ENG_OUT_OF_MEMORY;
    if (!add_info(code, (const unsigned char *)bytes + section.sh_offset, (size_t)section.sh_size)) {
      if (log != NULL && log_bytes > 0) snprintf(log, log_bytes, "the parameters of %s are not understood", code->name);
      eng_code_drop(code);
      return ENG_INVALID_IMAGE;
    }
    find_native(code);
    if (!eng_code_list(codes, count, code)) return ENG_OUT_OF_MEMORY;
  }
  if (log != NULL && log_bytes > 0) log[0] = '\0';
  return ENG_OK;
}
