/* Opening libvulkan and making the instance, with the validation layer where the setting asks for it: each of its
 * messages is then an error in the host's log. */
#include "pin.h"
#include "vulkan.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#define LAYER "VK_LAYER_KHRONOS_validation"
/* Of VK_KHR_portability_enumeration, which is younger than the oldest headers that will do. */
#define PORTABILITY "VK_KHR_portability_enumeration"
enum { ENUMERATE_PORTABILITY = 1 };

/* ---------------------------------------------------------------- validation */

static VKAPI_ATTR VkBool32 VKAPI_CALL message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                              VkDebugUtilsMessageTypeFlagsEXT types,
                                              const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
  const heddle_pinstance *self = user;
  char text[2048 + 1]; /* and the end of the line */
  (void)severity, (void)types;
  snprintf(text, sizeof text - 1, "validation: %s",
           data->pMessage != NULL ? data->pMessage : "a message without words");
  p_one_line(text);
  self->host->log(self->host->ctx, HEDDLE_LOG_ERROR, "vulkan", text);
  if (self->validate_log < 0) return VK_FALSE;
  const size_t length = strlen(text);
  text[length] = '\n'; /* one write, so that lines of several processes stay whole */
  if (write(self->validate_log, text, length + 1) < 0)
    self->host->log(self->host->ctx, HEDDLE_LOG_ERROR, "vulkan",
                    "the file of the setting validate_log cannot be written");
  return VK_FALSE;
}

static VkDebugUtilsMessengerCreateInfoEXT messenger_info(heddle_pinstance *self) {
  return (VkDebugUtilsMessengerCreateInfoEXT){
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
      .messageSeverity =
          VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
      .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT, /* the loader's own words are of type GENERAL */
      .pfnUserCallback = message,
      .pUserData = self,
  };
}

static heddle_status has_layer(heddle_pinstance *self, heddle_error *err) {
  const heddle_host *host = self->host;
  uint32_t n = 0;
  bool found = false;
  if (self->vk.EnumerateInstanceLayerProperties(&n, NULL) != VK_SUCCESS) n = 0;
  VkLayerProperties *list = host->alloc(host->ctx, (n + 1) * (uint64_t)sizeof *list, _Alignof(VkLayerProperties));
  if (list == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "vulkan: no memory for the list of layers");
  const VkResult code = n > 0 ? self->vk.EnumerateInstanceLayerProperties(&n, list) : VK_INCOMPLETE;
  for (uint32_t i = 0; i < n && code == VK_SUCCESS; i++) found = found || strcmp(list[i].layerName, LAYER) == 0;
  host->free(host->ctx, list);
  if (found) return HEDDLE_OK;
  return p_fail(err, HEDDLE_ENOTFOUND, 0,
                "vulkan: the setting validate asks for " LAYER ", which is not installed (package "
                "vulkan-validationlayers)");
}

/* ---------------------------------------------------------------- the instance */

static PFN_vkVoidFunction find_call(const heddle_pinstance *self, const char *name) {
  return self->vk.GetInstanceProcAddr(self->instance, name);
}

static heddle_status lacks(const char *name, heddle_error *err) {
  return p_fail(err, HEDDLE_ENODEV, 0, "no Vulkan device: libvulkan.so.1 has no vk%s, it is older than Vulkan 1.1",
                name);
}

#define FIND(name) self->vk.name = (PFN_vk##name)find_call(self, "vk" #name);
#define FIND_OR_FAIL(name) \
  FIND(name) \
  if (self->vk.name == NULL) return lacks(#name, err);

static heddle_status open_library(heddle_pinstance *self, heddle_error *err) {
  self->library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (self->library == NULL) {
    const char *why = dlerror();
    return p_fail(err, HEDDLE_ENODEV, 0, "no Vulkan device: the loader cannot be opened (%.300s); install libvulkan1",
                  why != NULL ? why : "no reason given");
  }
  void *address = dlsym(self->library, "vkGetInstanceProcAddr");
  self->vk.GetInstanceProcAddr = (PFN_vkGetInstanceProcAddr)(uintptr_t)address;
  if (address == NULL) return lacks("GetInstanceProcAddr", err);
  VLK_LOADER_CALLS(FIND_OR_FAIL)
  return HEDDLE_OK;
}

/* A loader that knows it shows drivers of layered implementations, such as those over Metal, only where it is asked to. */
static bool has_portability(const heddle_pinstance *self) {
  const heddle_host *host = self->host;
  uint32_t n = 0;
  bool found = false;
  if (self->vk.EnumerateInstanceExtensionProperties(NULL, &n, NULL) != VK_SUCCESS || n == 0) return false;
  VkExtensionProperties *list = host->alloc(host->ctx, n * (uint64_t)sizeof *list, _Alignof(VkExtensionProperties));
  if (list == NULL) return false;
  const VkResult code = self->vk.EnumerateInstanceExtensionProperties(NULL, &n, list);
  for (uint32_t i = 0; i < n && code >= 0; i++) found = found || strcmp(list[i].extensionName, PORTABILITY) == 0;
  host->free(host->ctx, list);
  return found;
}

static heddle_status make_instance(heddle_pinstance *self, heddle_error *err) {
  static const char *const layers[] = {LAYER};
  const char *extensions[3];
  uint32_t n_extensions = 0;
  static const VkValidationFeatureEnableEXT enabled[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(self);
  const VkValidationFeaturesEXT features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                            .pNext = &messenger,
                                            .enabledValidationFeatureCount = 1,
                                            .pEnabledValidationFeatures = enabled};
  VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pEngineName = "heddle"};
  VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &app};
  heddle_status s = HEDDLE_OK;
  VkResult code = self->vk.EnumerateInstanceVersion(&app.apiVersion);
  if (code != VK_SUCCESS) return vlk_check(NULL, code, "ask for the loader's version", err);
  if (app.apiVersion > VK_API_VERSION_1_3) app.apiVersion = VK_API_VERSION_1_3;
  if (self->validate) {
    s = has_layer(self, err);
    if (s != HEDDLE_OK) return s;
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = layers;
    extensions[n_extensions++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    extensions[n_extensions++] = VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME;
  }
  if (has_portability(self)) {
    extensions[n_extensions++] = PORTABILITY;
    info.flags = ENUMERATE_PORTABILITY;
  }
  info.enabledExtensionCount = n_extensions;
  info.ppEnabledExtensionNames = extensions;
  self->api_version = app.apiVersion;
  code = self->vk.CreateInstance(&info, NULL, &self->instance);
  if (code != VK_SUCCESS) {
    self->instance = VK_NULL_HANDLE;
    if (code == VK_ERROR_INCOMPATIBLE_DRIVER)
      return p_fail(
          err, HEDDLE_ENODEV, code,
          "no Vulkan device: the loader found no driver (vkCreateInstance: %s); install the one of your device",
          vlk_code_name(code));
    return vlk_check(NULL, code, "make an instance", err);
  }
  VLK_INSTANCE_CALLS(FIND_OR_FAIL)
  VLK_INSTANCE_EXTRAS(FIND)
  if (self->validate && self->vk.CreateDebugUtilsMessengerEXT != NULL)
    code = self->vk.CreateDebugUtilsMessengerEXT(self->instance, &messenger, NULL, &self->messenger);
  return vlk_check(NULL, code, "listen to the validation layer", err);
}

heddle_status vlk_load(heddle_pinstance *self, heddle_error *err) {
  const uint32_t before = vlk_objects_loaded();
  heddle_status s = open_library(self, err);
  if (s == HEDDLE_OK) s = make_instance(self, err);
  vlk_objects_keep(self->host, before);
  return s;
}

void vlk_unload(heddle_pinstance *self) {
  if (self->messenger != VK_NULL_HANDLE) {
    self->vk.DestroyDebugUtilsMessengerEXT(self->instance, self->messenger, NULL);
  }
  if (self->instance != VK_NULL_HANDLE && self->vk.DestroyInstance != NULL)
    self->vk.DestroyInstance(self->instance, NULL);
  if (self->library != NULL) dlclose(self->library);
}
