# What every lit suite shares: suffixes, substitutions, environment.
import os

import lit.formats

config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "lit.cfg.py", "CMakeLists.txt"]

config.environment["PATH"] = os.pathsep.join([config.commsir_bin, config.llvm_tools, os.environ["PATH"]])
config.environment["COMMSIR_SOURCE"] = config.commsir_source
config.environment["COMMSIR_BUILD"] = config.commsir_build
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
config.environment["FILECHECK_OPTS"] = "--dump-input-filter=error"

config.substitutions.append(("%python", config.commsir_python))
config.substitutions.append(("%commsir_source", config.commsir_source))
config.substitutions.append(("%commsir_build", config.commsir_build))
config.substitutions.append(("%commsir_lib", config.commsir_lib))
config.substitutions.append(("%llvm_tools", config.llvm_tools))

# Assembling PTX needs CUDA's ptxas, not a GPU.
if config.ptxas and not config.ptxas.endswith("NOTFOUND"):
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", config.ptxas))
