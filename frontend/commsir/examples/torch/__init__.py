"""Programs of PyTorch, unmodified except for the backend's name; any of them also runs with gloo or nccl.

    torchrun --standalone --nproc-per-node 4 -m commsir.examples.torch.fsdp_digits --backend commsir

quantized_backend.py and own_collective.py use CommsIR itself; survivors.py starts its ranks by itself.
"""
