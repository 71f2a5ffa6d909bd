public import TokenVault
