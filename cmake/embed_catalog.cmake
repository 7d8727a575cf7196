# catalog/*.yaml inside the program: one generated source that includes each file as bytes. The
# object depends on the files, so a changed catalog is a rebuilt program.
file(GLOB catalog_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/catalog/*.yaml)
set(symbols "")
set(rows "")
set(index 0)
foreach(path IN LISTS catalog_files)
  get_filename_component(name ${path} NAME)
  string(APPEND symbols
    "asm(\".section .rodata\\n\"\n"
    "    \"assay_catalog_${index}_begin:\\n\"\n"
    "    \".incbin \\\"${path}\\\"\\n\"\n"
    "    \"assay_catalog_${index}_end:\\n\"\n"
    "    \".byte 0\\n\"\n"
    "    \".text\\n\");\n"
    "extern \"C\" const char assay_catalog_${index}_begin[];\n"
    "extern \"C\" const char assay_catalog_${index}_end[];\n")
  string(APPEND rows
    "      {\"${name}\", text(assay_catalog_${index}_begin, assay_catalog_${index}_end)},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/embedded_catalog.cc CONTENT
"#include \"world/embedded.h\"
${symbols}
namespace assay {
std::vector<std::pair<std::string_view, std::string_view>> embedded_catalog() {
  [[maybe_unused]] const auto text = [](const char* begin, const char* end) {
    return std::string_view(begin, static_cast<size_t>(end - begin));
  };
  return {
${rows}  };
}
}  // namespace assay
")
set_source_files_properties(${CMAKE_BINARY_DIR}/embedded_catalog.cc PROPERTIES
                            OBJECT_DEPENDS "${catalog_files}" SKIP_UNITY_BUILD_INCLUSION ON)
target_sources(assay_world PRIVATE ${CMAKE_BINARY_DIR}/embedded_catalog.cc)
