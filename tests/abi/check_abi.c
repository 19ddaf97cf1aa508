/* Compares devices/pjrt/plugin/abi.h with the header that ships in the xla-cpu-pjrt wheel: every
 * size and offset we rely on. Compiled by the suite with -I <the wheel's include folder>. Ends with
 * 'N passed, N failed, N skipped'. */

#include "pjrt_c_api.h"

#include <stdio.h>

#include "devices/pjrt/plugin/abi_extensions.h"

static int passed, failed;

static void compare(const char *what, size_t ours, size_t theirs)
{
    if (ours == theirs) {
        passed++;
        return;
    }
    failed++;
    printf("FAIL %s: ours %zu, theirs %zu\n", what, ours, theirs);
}

/* Args structs may have grown since at their end: ours must end where a member of theirs ends,
 * which the last member's comparison shows. */
#define SIZE(ours, theirs) compare("sizeof " #theirs, sizeof(ours), sizeof(theirs))
#define MEMBER(ours, a, theirs, b)                                                                 \
    compare(#theirs "." #b, offsetof(ours, a), offsetof(theirs, b));                               \
    compare("size of " #theirs "." #b, sizeof(((ours *)0)->a), sizeof(((theirs *)0)->b))
#define SLOT(a, b) MEMBER(pjrt_api, a, PJRT_Api, b)

static void check_slots(void)
{
    SLOT(version, pjrt_api_version);
    SLOT(error_destroy, PJRT_Error_Destroy);
    SLOT(error_message, PJRT_Error_Message);
    SLOT(error_get_code, PJRT_Error_GetCode);
    SLOT(plugin_initialize, PJRT_Plugin_Initialize);
    SLOT(plugin_attributes, PJRT_Plugin_Attributes);
    SLOT(event_destroy, PJRT_Event_Destroy);
    SLOT(event_error, PJRT_Event_Error);
    SLOT(event_await, PJRT_Event_Await);
    SLOT(client_create, PJRT_Client_Create);
    SLOT(client_destroy, PJRT_Client_Destroy);
    SLOT(client_platform_name, PJRT_Client_PlatformName);
    SLOT(client_platform_version, PJRT_Client_PlatformVersion);
    SLOT(client_addressable_devices, PJRT_Client_AddressableDevices);
    SLOT(client_compile, PJRT_Client_Compile);
    SLOT(client_buffer_from_host, PJRT_Client_BufferFromHostBuffer);
    SLOT(device_description_kind, PJRT_DeviceDescription_Kind);
    SLOT(device_get_description, PJRT_Device_GetDescription);
    SLOT(device_memory_stats, PJRT_Device_MemoryStats);
    SLOT(executable_destroy, PJRT_Executable_Destroy);
    SLOT(executable_num_outputs, PJRT_Executable_NumOutputs);
    SLOT(executable_code_size, PJRT_Executable_SizeOfGeneratedCodeInBytes);
    SLOT(executable_optimized_program, PJRT_Executable_OptimizedProgram);
    SLOT(executable_serialize, PJRT_Executable_Serialize);
    SLOT(loaded_executable_destroy, PJRT_LoadedExecutable_Destroy);
    SLOT(loaded_executable_get_executable, PJRT_LoadedExecutable_GetExecutable);
    SLOT(loaded_executable_execute, PJRT_LoadedExecutable_Execute);
    SLOT(executable_deserialize_and_load, PJRT_Executable_DeserializeAndLoad);
    SLOT(buffer_destroy, PJRT_Buffer_Destroy);
    SLOT(buffer_to_host, PJRT_Buffer_ToHostBuffer);
    SLOT(topology_create, PJRT_TopologyDescription_Create);
    SLOT(topology_destroy, PJRT_TopologyDescription_Destroy);
    SLOT(topology_get_device_descriptions, PJRT_TopologyDescription_GetDeviceDescriptions);
    SLOT(compile, PJRT_Compile);
    SLOT(executable_get_compiled_memory_stats, PJRT_Executable_GetCompiledMemoryStats);
    SLOT(client_topology, PJRT_Client_TopologyDescription);
    SLOT(client_dma_map, PJRT_Client_DmaMap);
    SLOT(client_dma_unmap, PJRT_Client_DmaUnmap);
}

static void check_values_and_errors(void)
{
    SIZE(pjrt_named_value, PJRT_NamedValue);
    MEMBER(pjrt_named_value, name, PJRT_NamedValue, name);
    MEMBER(pjrt_named_value, type, PJRT_NamedValue, type);
    MEMBER(pjrt_named_value, int64_value, PJRT_NamedValue, int64_value);
    MEMBER(pjrt_named_value, value_size, PJRT_NamedValue, value_size);
    SIZE(pjrt_api_version, PJRT_Api_Version);
    MEMBER(pjrt_api_version, major_version, PJRT_Api_Version, major_version);
    MEMBER(pjrt_api_version, minor_version, PJRT_Api_Version, minor_version);
    SIZE(pjrt_error_destroy_args, PJRT_Error_Destroy_Args);
    SIZE(pjrt_error_message_args, PJRT_Error_Message_Args);
    MEMBER(pjrt_error_message_args, message_size, PJRT_Error_Message_Args, message_size);
    SIZE(pjrt_error_get_code_args, PJRT_Error_GetCode_Args);
    MEMBER(pjrt_error_get_code_args, code, PJRT_Error_GetCode_Args, code);
    SIZE(pjrt_plugin_initialize_args, PJRT_Plugin_Initialize_Args);
    SIZE(pjrt_plugin_attributes_args, PJRT_Plugin_Attributes_Args);
    SIZE(pjrt_event_args, PJRT_Event_Await_Args);
    SIZE(pjrt_event_args, PJRT_Event_Destroy_Args);
    SIZE(pjrt_event_args, PJRT_Event_Error_Args);
}

static void check_clients_and_buffers(void)
{
    SIZE(pjrt_client_create_args, PJRT_Client_Create_Args);
    MEMBER(pjrt_client_create_args, client, PJRT_Client_Create_Args, client);
    SIZE(pjrt_client_destroy_args, PJRT_Client_Destroy_Args);
    SIZE(pjrt_client_text_args, PJRT_Client_PlatformName_Args);
    SIZE(pjrt_client_text_args, PJRT_Client_PlatformVersion_Args);
    SIZE(pjrt_client_addressable_devices_args, PJRT_Client_AddressableDevices_Args);
    SIZE(pjrt_program, PJRT_Program);
    MEMBER(pjrt_program, format, PJRT_Program, format);
    SIZE(pjrt_client_compile_args, PJRT_Client_Compile_Args);
    MEMBER(pjrt_client_compile_args, executable, PJRT_Client_Compile_Args, executable);
    SIZE(pjrt_client_buffer_from_host_args, PJRT_Client_BufferFromHostBuffer_Args);
    MEMBER(pjrt_client_buffer_from_host_args, type, PJRT_Client_BufferFromHostBuffer_Args, type);
    MEMBER(pjrt_client_buffer_from_host_args, device, PJRT_Client_BufferFromHostBuffer_Args,
           device);
    MEMBER(pjrt_client_buffer_from_host_args, buffer, PJRT_Client_BufferFromHostBuffer_Args,
           buffer);
    SIZE(pjrt_device_description_kind_args, PJRT_DeviceDescription_Kind_Args);
    SIZE(pjrt_device_get_description_args, PJRT_Device_GetDescription_Args);
    SIZE(pjrt_device_memory_stats_args, PJRT_Device_MemoryStats_Args);
    MEMBER(pjrt_device_memory_stats_args, bytes_limit, PJRT_Device_MemoryStats_Args, bytes_limit);
    MEMBER(pjrt_device_memory_stats_args, bytes_limit_is_set, PJRT_Device_MemoryStats_Args,
           bytes_limit_is_set);
    SIZE(pjrt_client_dma_map_args, PJRT_Client_DmaMap_Args);
    MEMBER(pjrt_client_dma_map_args, size, PJRT_Client_DmaMap_Args, size);
    SIZE(pjrt_client_dma_unmap_args, PJRT_Client_DmaUnmap_Args);
    MEMBER(pjrt_client_dma_unmap_args, data, PJRT_Client_DmaUnmap_Args, data);
    SIZE(pjrt_buffer_args, PJRT_Buffer_Destroy_Args);
    SIZE(pjrt_tiled_layout, PJRT_Buffer_MemoryLayout_Tiled);
    MEMBER(pjrt_tiled_layout, minor_to_major, PJRT_Buffer_MemoryLayout_Tiled, minor_to_major);
    MEMBER(pjrt_tiled_layout, num_tiles, PJRT_Buffer_MemoryLayout_Tiled, num_tiles);
    SIZE(pjrt_memory_layout, PJRT_Buffer_MemoryLayout);
    MEMBER(pjrt_memory_layout, tiled, PJRT_Buffer_MemoryLayout, tiled);
    MEMBER(pjrt_memory_layout, type, PJRT_Buffer_MemoryLayout, type);
    SIZE(pjrt_buffer_to_host_args, PJRT_Buffer_ToHostBuffer_Args);
    MEMBER(pjrt_buffer_to_host_args, event, PJRT_Buffer_ToHostBuffer_Args, event);
}

static void check_programs(void)
{
    SIZE(pjrt_executable_args, PJRT_Executable_Destroy_Args);
    SIZE(pjrt_loaded_executable_args, PJRT_LoadedExecutable_Destroy_Args);
    SIZE(pjrt_loaded_executable_get_executable_args, PJRT_LoadedExecutable_GetExecutable_Args);
    SIZE(pjrt_executable_num_outputs_args, PJRT_Executable_NumOutputs_Args);
    SIZE(pjrt_executable_code_size_args, PJRT_Executable_SizeOfGeneratedCodeInBytes_Args);
    SIZE(pjrt_executable_memory_stats_args, PJRT_Executable_GetCompiledMemoryStats_Args);
    MEMBER(pjrt_executable_memory_stats_args, peak_memory_bytes,
           PJRT_Executable_GetCompiledMemoryStats_Args, peak_memory_in_bytes);
    SIZE(pjrt_executable_optimized_program_args, PJRT_Executable_OptimizedProgram_Args);
    SIZE(pjrt_executable_serialize_args, PJRT_Executable_Serialize_Args);
    MEMBER(pjrt_executable_serialize_args, serialized_executable_deleter,
           PJRT_Executable_Serialize_Args, serialized_executable_deleter);
    SIZE(pjrt_executable_deserialize_args, PJRT_Executable_DeserializeAndLoad_Args);
    MEMBER(pjrt_executable_deserialize_args, loaded_executable,
           PJRT_Executable_DeserializeAndLoad_Args, loaded_executable);
    SIZE(pjrt_execute_options, PJRT_ExecuteOptions);
    MEMBER(pjrt_execute_options, launch_id, PJRT_ExecuteOptions, launch_id);
    MEMBER(pjrt_execute_options, incarnation_ids, PJRT_ExecuteOptions, incarnation_ids);
    SIZE(pjrt_execute_args, PJRT_LoadedExecutable_Execute_Args);
    MEMBER(pjrt_execute_args, output_lists, PJRT_LoadedExecutable_Execute_Args, output_lists);
    MEMBER(pjrt_execute_args, execute_device, PJRT_LoadedExecutable_Execute_Args, execute_device);
    SIZE(pjrt_topology_create_args, PJRT_TopologyDescription_Create_Args);
    SIZE(pjrt_topology_args, PJRT_TopologyDescription_Destroy_Args);
    SIZE(pjrt_client_topology_args, PJRT_Client_TopologyDescription_Args);
    MEMBER(pjrt_client_topology_args, topology, PJRT_Client_TopologyDescription_Args, topology);
    SIZE(pjrt_extension_base, PJRT_Extension_Base);
    MEMBER(pjrt_extension_base, next, PJRT_Extension_Base, next);
    SIZE(pjrt_topology_descriptions_args, PJRT_TopologyDescription_GetDeviceDescriptions_Args);
    SIZE(pjrt_compile_args, PJRT_Compile_Args);
    MEMBER(pjrt_compile_args, executable, PJRT_Compile_Args, executable);
}

static void check_numbers(void)
{
    compare("major version", PJRT_ABI_MAJOR, PJRT_API_MAJOR);
    compare("profiler", PJRT_EXTENSION_PROFILER, PJRT_Extension_Type_Profiler);
    /* Later than this header: the fingerprint is slot 133 of the table, from 0. */
    compare("fingerprint", offsetof(pjrt_api, topology_fingerprint),
            offsetof(PJRT_Api, PJRT_Error_Destroy) + 133 * sizeof(void *));
    compare("INTERNAL", PJRT_CODE_INTERNAL, PJRT_Error_Code_INTERNAL);
    compare("UNAVAILABLE", PJRT_CODE_UNAVAILABLE, PJRT_Error_Code_UNAVAILABLE);
    compare("UNAUTHENTICATED", PJRT_CODE_UNAUTHENTICATED, PJRT_Error_Code_UNAUTHENTICATED);
    compare("PRED", PJRT_TYPE_PRED, PJRT_Buffer_Type_PRED);
    compare("S64", PJRT_TYPE_S64, PJRT_Buffer_Type_S64);
    compare("U64", PJRT_TYPE_U64, PJRT_Buffer_Type_U64);
    compare("F32", PJRT_TYPE_F32, PJRT_Buffer_Type_F32);
    compare("BF16", PJRT_TYPE_BF16, PJRT_Buffer_Type_BF16);
    compare("until transfer completes", PJRT_IMMUTABLE_UNTIL_TRANSFER_COMPLETES,
            PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes);
    compare("bool value", PJRT_VALUE_BOOL, PJRT_NamedValue_kBool);
}

int main(void)
{
    check_slots();
    check_values_and_errors();
    check_clients_and_buffers();
    check_programs();
    check_numbers();
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
