"""How the platform talks to outside services."""
