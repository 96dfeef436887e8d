/* A libvulkan for tests, which the plugin opens in place of the real one, because it has the same name (SONAME) and was
 * opened before. It passes calls on, and lies where vulkan_shim.h says: about queues, memory and clocks that lavapipe does
 * not have, and about devices that are lost or hang. */
#include "vulkan_shim.h"

#define VK_NO_PROTOTYPES
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <vulkan/vulkan_core.h>

#define SHOWN __attribute__((visibility("default")))

SHOWN vulkan_shim vulkan_shim_settings;
SHOWN VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char *name);

static vulkan_shim *const shim = &vulkan_shim_settings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* around the one real queue, and lost */
static int lost;
static PFN_vkGetInstanceProcAddr real_instance;
static PFN_vkGetDeviceProcAddr real_device;
static VkInstance last_instance;
static VkDevice last_device; /* of several the last will do: one driver has made them all */

#define INSTANCE_CALL(name) ((PFN_vk##name)real_instance(last_instance, "vk" #name))
#define DEVICE_CALL(device, name) ((PFN_vk##name)real_device(device, "vk" #name))

/* ---------------------------------------------------------------- what a device is */

static VKAPI_ATTR void VKAPI_CALL families(VkPhysicalDevice id, uint32_t *n, VkQueueFamilyProperties *out) {
  uint32_t one = 1;
  VkQueueFamilyProperties first;
  if (!shim->families || out == NULL || *n < 3) {
    INSTANCE_CALL(GetPhysicalDeviceQueueFamilyProperties)(id, n, out);
    return;
  }
  INSTANCE_CALL(GetPhysicalDeviceQueueFamilyProperties)(id, &one, &first);
  out[0] = out[1] = out[2] = first;
  out[1].queueFlags = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT;
  out[1].queueCount = 3;
  out[2].queueFlags = VK_QUEUE_TRANSFER_BIT;
  *n = 3;
}

static VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice id, VkPhysicalDeviceProperties2 *out) {
  INSTANCE_CALL(GetPhysicalDeviceProperties2)(id, out);
  if (shim->discrete) out->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  if (shim->few_buffers) out->properties.limits.maxPerStageDescriptorStorageBuffers = 4;
}

static VKAPI_ATTR void VKAPI_CALL memory(VkPhysicalDevice id, VkPhysicalDeviceMemoryProperties2 *out) {
  INSTANCE_CALL(GetPhysicalDeviceMemoryProperties2)(id, out);
  if (shim->other_type) {
    out->memoryProperties.memoryTypes[1] = out->memoryProperties.memoryTypes[0];
    out->memoryProperties.memoryTypeCount = 2;
  }
  if (shim->discrete)
    out->memoryProperties.memoryTypes[0].propertyFlags &= ~(VkMemoryPropertyFlags)VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
}

static VKAPI_ATTR VkResult VKAPI_CALL clocks(VkPhysicalDevice id, uint32_t *n, VkTimeDomainEXT *out) {
  if (!shim->no_clock) return INSTANCE_CALL(GetPhysicalDeviceCalibrateableTimeDomainsEXT)(id, n, out);
  *n = 0;
  return VK_SUCCESS;
}

/* ---------------------------------------------------------------- a device with one queue, really */

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice id, const VkDeviceCreateInfo *how,
                                                    const VkAllocationCallbacks *memory_of, VkDevice *out) {
  VkDeviceQueueCreateInfo queue = how->pQueueCreateInfos[0];
  VkDeviceCreateInfo mine = *how;
  queue.queueFamilyIndex = 0;
  queue.queueCount = 1;
  mine.queueCreateInfoCount = 1;
  mine.pQueueCreateInfos = &queue;
  const VkResult code = INSTANCE_CALL(CreateDevice)(id, &mine, memory_of, out);
  if (code == VK_SUCCESS) last_device = *out;
  return code;
}

static VKAPI_ATTR void VKAPI_CALL get_queue(VkDevice device, uint32_t family, uint32_t index, VkQueue *out) {
  (void)family, (void)index;
  DEVICE_CALL(device, GetDeviceQueue)(device, 0, 0, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_pool(VkDevice device, const VkCommandPoolCreateInfo *how,
                                                  const VkAllocationCallbacks *memory_of, VkCommandPool *out) {
  VkCommandPoolCreateInfo mine = *how;
  if (mine.queueFamilyIndex == 2) shim->copy_pools++;
  mine.queueFamilyIndex = 0;
  return DEVICE_CALL(device, CreateCommandPool)(device, &mine, memory_of, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_buffer(VkDevice device, const VkBufferCreateInfo *how,
                                                    const VkAllocationCallbacks *memory_of, VkBuffer *out) {
  VkBufferCreateInfo mine = *how;
  if (shim->families && mine.sharingMode != VK_SHARING_MODE_CONCURRENT)
    return VK_ERROR_UNKNOWN; /* two families use it */
  mine.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  mine.queueFamilyIndexCount = 0;
  return DEVICE_CALL(device, CreateBuffer)(device, &mine, memory_of, out);
}

static VKAPI_ATTR void VKAPI_CALL requirements(VkDevice device, VkBuffer buffer, VkMemoryRequirements *out) {
  DEVICE_CALL(device, GetBufferMemoryRequirements)(device, buffer, out);
  if (shim->other_type) out->memoryTypeBits = 2;
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice device, const VkMemoryAllocateInfo *how,
                                               const VkAllocationCallbacks *memory_of, VkDeviceMemory *out) {
  VkMemoryAllocateInfo mine = *how;
  if (shim->other_type) mine.memoryTypeIndex = 0; /* the real one */
  return DEVICE_CALL(device, AllocateMemory)(device, &mine, memory_of, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL flush(VkDevice device, uint32_t n, const VkMappedMemoryRange *ranges) {
  for (uint32_t i = 0; i < n; i++)
    if (ranges[i].offset % 64 != 0 || ranges[i].size % 64 != 0) return VK_ERROR_UNKNOWN; /* lavapipe's granule */
  shim->flushes++;
  return DEVICE_CALL(device, FlushMappedMemoryRanges)(device, n, ranges);
}

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t n, const VkSubmitInfo *what, VkFence fence) {
  pthread_mutex_lock(&lock);
  if (shim->lose) lost = 1;
  shim->submissions++;
  const VkResult code = lost         ? VK_ERROR_DEVICE_LOST
                        : shim->hang ? VK_SUCCESS
                                     : DEVICE_CALL(last_device, QueueSubmit)(queue, n, what, fence);
  pthread_mutex_unlock(&lock);
  return code;
}

static int is_lost(void) {
  pthread_mutex_lock(&lock);
  const int is = lost;
  pthread_mutex_unlock(&lock);
  return is;
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(VkDevice device, const VkSemaphoreWaitInfo *how, uint64_t ns) {
  PFN_vkWaitSemaphores wait = DEVICE_CALL(device, WaitSemaphores);
  if (wait == NULL)
    wait = (PFN_vkWaitSemaphores)real_device(device, "vkWaitSemaphoresKHR"); /* a device of Vulkan 1.1 */
  const VkResult code = is_lost() ? VK_ERROR_DEVICE_LOST : wait(device, how, ns);
  const struct timespec nap = {shim->late_waits / 1000, shim->late_waits % 1000 * 1000000L};
  if (code == VK_SUCCESS && shim->late_waits > 0) nanosleep(&nap, NULL);
  return code;
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_fences(VkDevice device, uint32_t n, const VkFence *fences, VkBool32 all,
                                                  uint64_t ns) {
  return is_lost() ? VK_ERROR_DEVICE_LOST : DEVICE_CALL(device, WaitForFences)(device, n, fences, all, ns);
}

/* ---------------------------------------------------------------- finding functions */

#define PORTABILITY "VK_KHR_portability_enumeration"

static VKAPI_ATTR VkResult VKAPI_CALL version(uint32_t *out) {
  const VkResult code = ((PFN_vkEnumerateInstanceVersion)real_instance(NULL, "vkEnumerateInstanceVersion"))(out);
  if (shim->old_loader) *out = VK_API_VERSION_1_1;
  return code;
}

static VKAPI_ATTR VkResult VKAPI_CALL extensions(const char *layer, uint32_t *n, VkExtensionProperties *out) {
  if (!shim->portable)
    return ((PFN_vkEnumerateInstanceExtensionProperties)real_instance(NULL, "vkEnumerateInstanceExtensionProperties"))(
        layer, n, out);
  *n = 1;
  if (out != NULL) strcpy(out->extensionName, PORTABILITY);
  return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *how,
                                                      const VkAllocationCallbacks *memory_of, VkInstance *out) {
  VkInstanceCreateInfo mine = *how;
  if (shim->portable) { /* the real one may not know it */
    for (uint32_t i = 0; i < how->enabledExtensionCount; i++)
      if (strcmp(how->ppEnabledExtensionNames[i], PORTABILITY) == 0) shim->asked_portable += (int32_t)how->flags;
    mine.flags = 0;
    mine.enabledExtensionCount = 0;
  }
  const VkResult code = ((PFN_vkCreateInstance)real_instance(NULL, "vkCreateInstance"))(&mine, memory_of, out);
  if (code != VK_SUCCESS) return code;
  last_instance = *out;
  real_device = (PFN_vkGetDeviceProcAddr)real_instance(*out, "vkGetDeviceProcAddr");
  return code;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char *name);

typedef struct call {
  const char *name;
  PFN_vkVoidFunction mine;
} call;

static const call instance_calls[] = {
    {"vkCreateInstance", (PFN_vkVoidFunction)create_instance},
    {"vkEnumerateInstanceVersion", (PFN_vkVoidFunction)version},
    {"vkEnumerateInstanceExtensionProperties", (PFN_vkVoidFunction)extensions},
    {"vkCreateDevice", (PFN_vkVoidFunction)create_device},
    {"vkGetDeviceProcAddr", (PFN_vkVoidFunction)device_function},
    {"vkGetPhysicalDeviceQueueFamilyProperties", (PFN_vkVoidFunction)families},
    {"vkGetPhysicalDeviceProperties2", (PFN_vkVoidFunction)properties},
    {"vkGetPhysicalDeviceMemoryProperties2", (PFN_vkVoidFunction)memory},
    {"vkGetPhysicalDeviceCalibrateableTimeDomainsEXT", (PFN_vkVoidFunction)clocks},
};

static const call device_calls[] = {
    {"vkGetDeviceQueue", (PFN_vkVoidFunction)get_queue},
    {"vkCreateCommandPool", (PFN_vkVoidFunction)create_pool},
    {"vkCreateBuffer", (PFN_vkVoidFunction)create_buffer},
    {"vkGetBufferMemoryRequirements", (PFN_vkVoidFunction)requirements},
    {"vkAllocateMemory", (PFN_vkVoidFunction)allocate},
    {"vkFlushMappedMemoryRanges", (PFN_vkVoidFunction)flush},
    {"vkInvalidateMappedMemoryRanges", (PFN_vkVoidFunction)flush},
    {"vkQueueSubmit", (PFN_vkVoidFunction)submit},
    {"vkWaitSemaphores", (PFN_vkVoidFunction)wait_semaphores},
    {"vkWaitForFences", (PFN_vkVoidFunction)wait_fences},
};

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char *name) {
  for (size_t i = 0; i < sizeof device_calls / sizeof device_calls[0]; i++)
    if (strcmp(device_calls[i].name, name) == 0) return device_calls[i].mine;
  return real_device(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char *name) {
  if (real_instance == NULL) {
    void *library = dlopen(shim->loader, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library != NULL ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
    if (symbol == NULL) return NULL;
    memcpy(&real_instance, &symbol, sizeof real_instance);
  }
  for (size_t i = 0; i < sizeof instance_calls / sizeof instance_calls[0]; i++)
    if (strcmp(instance_calls[i].name, name) == 0) return instance_calls[i].mine;
  return real_instance(instance, name);
}
