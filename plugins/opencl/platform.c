/* Finding platforms and devices, splitting devices where that was asked, and the context of each platform. */
#include "opencl.h"

#include <pthread.h>

#ifndef CL_DEVICE_UUID_KHR
#define CL_DEVICE_UUID_KHR 0x106A
#endif
#ifndef CL_DEVICE_PCI_BUS_INFO_KHR
#define CL_DEVICE_PCI_BUS_INFO_KHR 0x410F
#endif

enum { MOST_PLATFORMS = 64, MOST_DEVICES = 256 };

/* A number or struct of a device; false, and *out untouched, where the driver has none. */
static bool get(cl_device_id id, cl_device_info what, size_t bytes, void *out) {
  char room[64];
  size_t got = 0;
  if (bytes > sizeof room || clGetDeviceInfo(id, what, sizeof room, room, &got) != CL_SUCCESS || got < bytes)
    return false;
  memcpy(out, room, bytes);
  return true;
}

/* A text, trimmed and cut to what there is room for. */
static void get_text(const heddle_host *host, cl_device_id id, cl_device_info what, char *out, size_t bytes) {
  size_t need = 0;
  out[0] = '\0';
  if (clGetDeviceInfo(id, what, 0, NULL, &need) != CL_SUCCESS || need == 0) return;
  char *text = host->alloc(host->ctx, need + 1, 1);
  if (text == NULL) return;
  if (clGetDeviceInfo(id, what, need, text, NULL) == CL_SUCCESS) {
    text[need] = '\0';
    snprintf(out, bytes, "%s", text + strspn(text, " \t"));
    p_one_line(out);
    for (size_t n = strlen(out); n > 0 && out[n - 1] == ' ';) out[--n] = '\0';
  }
  host->free(host->ctx, text);
}

static bool has_extension(const heddle_host *host, cl_device_id id, const char *name) {
  size_t need = 0;
  bool found = false;
  if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, 0, NULL, &need) != CL_SUCCESS || need == 0) return false;
  char *text = host->alloc(host->ctx, need + 1, 1);
  if (text == NULL) return false;
  if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, need, text, NULL) == CL_SUCCESS) {
    const size_t length = strlen(name);
    text[need] = '\0';
    for (const char *at = strstr(text, name); at != NULL && !found; at = strstr(at + 1, name))
      found = (at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0');
  }
  host->free(host->ctx, text);
  return found;
}

/* The version of an extension as CL_MAKE_VERSION; 0 where the device has none or does not say. */
static uint32_t extension_version(const heddle_host *host, cl_device_id id, const char *name) {
  size_t need = 0;
  uint32_t version = 0;
  if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS_WITH_VERSION, 0, NULL, &need) != CL_SUCCESS || need == 0) return 0;
  cl_name_version *list = host->alloc(host->ctx, need, _Alignof(cl_name_version));
  if (list == NULL) return 0;
  if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS_WITH_VERSION, need, list, NULL) == CL_SUCCESS) {
    for (size_t i = 0; i < need / sizeof *list; i++) {
      if (strncmp(list[i].name, name, sizeof list[i].name) == 0) version = list[i].version;
    }
  }
  host->free(host->ctx, list);
  return version;
}

static void describe(const heddle_host *host, cl_device_id id, uint32_t platform, const char *platform_words,
                     const ocl_command_buffers *commands, bool shares, ocl_info *out) {
  cl_ulong memory = 0, most = 0;
  cl_uint units = 1, align_bits = 0;
  cl_bool unified = CL_FALSE;
  cl_device_svm_capabilities svm = 0;
  cl_device_fp_config single = 0, twice = 0;
  size_t group = 1;
  char version[128];
  memset(out, 0, sizeof *out);
  out->id = id;
  out->platform = platform;
  get(id, CL_DEVICE_TYPE, sizeof out->type, &out->type);
  get_text(host, id, CL_DEVICE_NAME, out->name, sizeof out->name);
  if (out->name[0] == '\0') snprintf(out->name, sizeof out->name, "a device without a name");
  get_text(host, id, CL_DRIVER_VERSION, version, sizeof version);
  snprintf(out->driver, sizeof out->driver, "%.70s, driver %.40s", platform_words, version);
  p_one_line(out->driver); /* a character may have been cut */
  get(id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory);
  get(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most);
  get(id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units);
  get(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof align_bits, &align_bits);
  get(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof group, &group);
  get(id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified);
  get(id, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm);
  get(id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof single, &single);
  get(id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof twice, &twice);
  if (has_extension(host, id, "cl_khr_device_uuid")) get(id, CL_DEVICE_UUID_KHR, sizeof out->uuid, out->uuid);
  memset(out->pci, 0xff, sizeof out->pci);
  if (has_extension(host, id, "cl_khr_pci_bus_info")) get(id, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof out->pci, out->pci);
  cl_bool images = CL_FALSE;
  get(id, CL_DEVICE_IMAGE_SUPPORT, sizeof images, &images);
  if (images) {
    get(id, CL_DEVICE_IMAGE2D_MAX_WIDTH, sizeof out->image[0], &out->image[0]);
    get(id, CL_DEVICE_IMAGE2D_MAX_HEIGHT, sizeof out->image[1], &out->image[1]);
  }
  if (out->image[0] > UINT32_MAX) out->image[0] = UINT32_MAX;
  if (out->image[1] > UINT32_MAX) out->image[1] = UINT32_MAX;
  if (out->image[1] == 0) out->image[0] = 0;
  out->memory_bytes = memory;
  out->max_buffer_bytes = most;
  out->compute_units = units;
  out->max_group = group;
  out->alignment = 64;
  while (out->alignment < align_bits / 8) out->alignment *= 2;
  out->rounded = (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  out->doubles = twice != 0;
  out->writes = strstr(platform_words, "Portable Computing Language") != NULL || strstr(platform_words, "PoCL") != NULL;
  out->unified = shares && unified && (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0;
  ocl_commands_describe(commands, extension_version(host, id, "cl_khr_command_buffer"), out);
}

/* The parts of a device, units compute units each; 0 where it cannot be split. */
static cl_uint split(cl_device_id id, uint32_t units, cl_device_id *out, cl_uint room) {
  const cl_device_partition_property how[] = {CL_DEVICE_PARTITION_EQUALLY, (cl_device_partition_property)units, 0};
  cl_uint n = 0;
  if (units == 0 || clCreateSubDevices(id, how, 0, NULL, &n) != CL_SUCCESS || n < 2 || n > room) return 0;
  return clCreateSubDevices(id, how, n, out, NULL) == CL_SUCCESS ? n : 0;
}

static heddle_status add_platform(heddle_pinstance *self, uint32_t index, heddle_error *err) {
  const heddle_host *host = self->host;
  ocl_platform *p = &self->platforms[index];
  cl_device_id found[MOST_DEVICES];
  cl_uint n = 0;
  char name[256] = "", version[256] = "", words[136];
  if (clGetDeviceIDs(p->id, CL_DEVICE_TYPE_ALL, MOST_DEVICES, found, &n) != CL_SUCCESS) return HEDDLE_OK;
  if (n > MOST_DEVICES) n = MOST_DEVICES;
  clGetPlatformInfo(p->id, CL_PLATFORM_NAME, sizeof name, name, NULL);
  clGetPlatformInfo(p->id, CL_PLATFORM_VERSION, sizeof version, version, NULL);
  snprintf(words, sizeof words, "%.60s, %.60s", name[0] != '\0' ? name : "a platform", version);
  p_one_line(words);

  void *memory = NULL;
  heddle_status s = ocl_new(host, MOST_DEVICES * sizeof(cl_device_id), "a platform", &memory, err);
  if (s != HEDDLE_OK) return s;
  p->devices = memory;
  ocl_commands_find(p->id, &p->commands);
  for (cl_uint i = 0; i < n; i++) {
    cl_device_id parts[MOST_DEVICES];
    const cl_uint room = MOST_DEVICES - (self->n_devices < MOST_DEVICES ? self->n_devices : MOST_DEVICES);
    const cl_uint n_parts = split(found[i], self->sub_units, parts, room);
    for (cl_uint k = 0; k < (n_parts > 0 ? n_parts : 1) && self->n_devices < MOST_DEVICES; k++) {
      ocl_info *info = &self->devices[self->n_devices++];
      describe(host, n_parts > 0 ? parts[k] : found[i], index, words, &p->commands, self->unified, info);
      info->sub = n_parts > 0;
      if (!self->images) info->image[0] = info->image[1] = 0;
      p->devices[p->n_devices++] = info->id;
    }
  }
  return HEDDLE_OK;
}

static heddle_status find_devices(heddle_pinstance *self, heddle_error *err) {
  const heddle_host *host = self->host;
  cl_platform_id ids[MOST_PLATFORMS];
  cl_uint n = 0;
  const cl_int code = clGetPlatformIDs(MOST_PLATFORMS, ids, &n);
  if (code != CL_SUCCESS || n == 0) {
    return p_fail(
        err, HEDDLE_ENODEV, code,
        "no OpenCL platform: the loader found no driver (clGetPlatformIDs: %s); install the one of your device",
        ocl_code_name(code));
  }
  if (n > MOST_PLATFORMS) n = MOST_PLATFORMS;
  void *platforms = NULL, *devices = NULL;
  heddle_status s = ocl_new(host, n * sizeof(ocl_platform), "platforms", &platforms, err);
  if (s == HEDDLE_OK) s = ocl_new(host, MOST_DEVICES * sizeof(ocl_info), "devices", &devices, err);
  self->platforms = platforms;
  self->devices = devices;
  for (cl_uint i = 0; i < n && s == HEDDLE_OK; i++) {
    self->platforms[i].id = ids[i];
    self->n_platforms = i + 1;
    s = add_platform(self, i, err);
  }
  if (s == HEDDLE_OK && self->n_devices == 0)
    s = p_fail(err, HEDDLE_ENODEV, 0, "no OpenCL device: %u platforms are installed, and none has a device", n);
  return s;
}

/* Drivers start up in the first of these calls, and PoCL 3.1 crashes when two threads make them at once. The lock is
 * one of the process, since that is what it protects: the driver; no data of the plugin's. */
heddle_status ocl_find_devices(heddle_pinstance *self, heddle_error *err) {
  static pthread_mutex_t start_up = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&start_up);
  heddle_status s = find_devices(self, err);
  pthread_mutex_unlock(&start_up);
  return s;
}

void ocl_forget_devices(heddle_pinstance *self) {
  const heddle_host *host = self->host;
  for (uint32_t i = 0; i < self->n_platforms; i++) {
    if (self->platforms[i].context != NULL) clReleaseContext(self->platforms[i].context);
    host->free(host->ctx, self->platforms[i].devices);
  }
  for (uint32_t i = 0; i < self->n_devices; i++) {
    if (self->devices[i].sub) clReleaseDevice(self->devices[i].id);
  }
  host->free(host->ctx, self->platforms);
  host->free(host->ctx, self->devices);
}

heddle_status ocl_context_get(heddle_pinstance *self, const ocl_info *info, cl_context *out, heddle_error *err) {
  ocl_platform *p = &self->platforms[info->platform];
  cl_int code = CL_SUCCESS;
  pthread_mutex_lock(&self->lock);
  if (p->context == NULL) {
    const cl_context_properties how[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)p->id, 0};
    p->context = clCreateContext(how, p->n_devices, p->devices, NULL, NULL, &code);
    if (code != CL_SUCCESS) p->context = NULL;
  }
  if (code == CL_SUCCESS) p->users++;
  *out = p->context;
  pthread_mutex_unlock(&self->lock);
  return ocl_check(NULL, code, "make a context", err);
}

void ocl_context_put(heddle_pinstance *self, const ocl_info *info) {
  ocl_platform *p = &self->platforms[info->platform];
  pthread_mutex_lock(&self->lock);
  if (--p->users == 0) {
    ocl_blas_forget(self);
    clReleaseContext(p->context);
    p->context = NULL;
  }
  pthread_mutex_unlock(&self->lock);
}

void ocl_context_abandon(heddle_pinstance *self, const ocl_info *info) {
  ocl_platform *p = &self->platforms[info->platform];
  pthread_mutex_lock(&self->lock);
  if (--p->users == 0) {
    ocl_blas_forget(self);
    p->context = NULL; /* the device's now */
  }
  pthread_mutex_unlock(&self->lock);
}
