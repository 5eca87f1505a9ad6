# Run as a script: turns the text file INPUT into a C++ source OUTPUT that defines millrace::NAME.
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "// Generated from ${SOURCE_NAME}.\n#include \"tools/millrace/embedded.h\"\n\n"
     "const char* const millrace::${NAME} = R\"embedded(${text})embedded\";\n")
